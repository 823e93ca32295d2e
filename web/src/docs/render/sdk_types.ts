// Reads the types of the SDK from its sources: what is exported, with the sentence on each.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

/** A page of the reference. What a declaration needs and no other area does is described on its page. */
interface AreaSource {
  name: string;
  title: string;
  files: string[]; // of sdk/, whose exports have their page here
  /** The declarations that the page is about, each with what a program calls its value. */
  subjects: Record<string, string>;
}

const sources: AreaSource[] = [
  { name: "client", title: "Client", files: ["src/index.ts"], subjects: { init: "", Parlor: "parlor", ParlorEvents: "" } },
  { name: "rooms", title: "Finding rooms", files: [], subjects: { Rooms: "parlor.rooms" } },
  { name: "room", title: "A room", files: [], subjects: { Room: "room", Shared: "room.shared", RoomEvents: "" } },
  { name: "progress", title: "Saves", files: [], subjects: { Progress: "parlor.progress" } },
  { name: "wallet", title: "Wallet", files: [], subjects: { Wallet: "parlor.wallet" } },
  { name: "store", title: "Store", files: [], subjects: { Store: "parlor.store" } },
  { name: "people", title: "Friends and account", files: [], subjects: { Friends: "parlor.friends", OwnAccount: "parlor.account" } },
  { name: "boards", title: "Leaderboards", files: ["src/boards.ts"], subjects: { createBoards: "", Boards: "boards" } },
  {
    name: "tournaments", title: "Tournaments", files: ["src/tournaments.ts"],
    subjects: { createTournaments: "", Tournaments: "tournaments" },
  },
  { name: "binary", title: "Messages as bytes", files: ["src/binary.ts"], subjects: { createBinaryLane: "", BinaryLane: "lane" } },
  {
    name: "server", title: "Game servers",
    files: ["index", "types", "webhook", "files"].map((name) => `src/server/${name}.ts`),
    subjects: { server: "", Server: "server", ServerEvents: "", GameError: "error", verifyWebhook: "", filePositions: "" },
  },
  { name: "errors", title: "Errors", files: ["src/errors.ts", "src/generated/codes.ts"], subjects: { ParlorError: "error" } },
  { name: "debug", title: "Devtools", files: ["src/devtools/types.ts"], subjects: { Debug: "parlor.debug" } },
  // Every function that the package for React exports is a subject.
  { name: "react", title: "React hooks", files: ["react/src/hooks.ts"], subjects: {} },
];

const shared = ["src/types.ts"]; // the areas share what it declares
const events = "src/generated/events.ts";
const hooks = "react/src/index.ts";

export interface Member {
  name: string;
  kind: "method" | "property";
  signatures: string[]; // TypeScript, one for each overload
  doc: string;
  parameters: { name: string; type: string; optional: boolean }[];
  returns?: string; // a type
}

export interface Declaration {
  name: string;
  area: string;
  doc: string;
  signature: string; // of a function, an alias or a class; "" for an interface
  members: Member[];
  schema?: string; // the schema of openapi.yaml that it is
  subject?: string; // what a program calls its value
}

export interface Area {
  name: string;
  title: string;
  subjects: Declaration[];
  types: Declaration[];
}

type Named = ts.InterfaceDeclaration | ts.TypeAliasDeclaration | ts.ClassDeclaration | ts.FunctionDeclaration;

/** Returns the sentences before a declaration, as one text. */
function docOf(node: ts.Node): string {
  const comments = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc);
  return comments.map((one) => ts.getTextOfJSDocComment(one.comment) ?? "").join("\n").replace(/\s*\n\s*/g, " ").trim();
}

/** Returns a node as text without comments and without the indentation of its file. */
function textOf(node: ts.Node): string {
  const text = node.getText().replace(/\/\*[\s\S]*?\*\/\s*/g, "").replace(/;$/, "");
  const last = text.split("\n").at(-1)!.match(/^ */)![0];
  return text.split("\n").map((line) => (line.startsWith(last) ? line.slice(last.length) : line)).join("\n");
}

const schemaOf = (node: ts.Node) =>
  node.getText().match(/^(?:Schemas|components\["schemas"\])\["(\w+)"\]$/)?.[1];

function readMember(node: ts.TypeElement | ts.ClassElement): Member | null {
  if (!node.name || ts.isConstructorDeclaration(node)) return null;
  const name = node.name.getText();
  const type = (node as ts.PropertySignature).type;
  const callable = ts.isMethodSignature(node) || ts.isMethodDeclaration(node) ? node : undefined;
  return {
    name, doc: docOf(node), kind: callable ? "method" : "property",
    signatures: [textOf(node).replace(/^declare /, "")],
    parameters: parametersOf(callable),
    returns: callable ? callable.type && textOf(callable.type) : type && textOf(type),
  };
}

const parametersOf = (node: ts.SignatureDeclaration | undefined) => (node?.parameters ?? []).map((one) => ({
  name: one.name.getText(), type: one.type ? textOf(one.type) : "", optional: !!(one.questionToken || one.initializer),
}));

/** Returns the members of an interface or a class; overloads are one. */
function readMembers(nodes: ts.NodeArray<ts.TypeElement | ts.ClassElement>): Member[] {
  const members: Member[] = [];
  for (const node of nodes) {
    const member = readMember(node);
    const before = members.find((one) => one.name === member?.name);
    if (!member) continue;
    if (!before) members.push(member);
    else {
      before.signatures.push(...member.signatures);
      before.doc = `${before.doc} ${member.doc}`.trim();
      before.returns = `${before.returns} | ${member.returns}`;
      for (const one of member.parameters) {
        if (!before.parameters.some(({ name }) => name === one.name)) before.parameters.push({ ...one, optional: true });
      }
    }
  }
  return members;
}

/** Returns the members of the types that an alias puts together, such as the events of a room. */
function membersOfAlias(node: ts.TypeNode): Member[] {
  if (ts.isTypeLiteralNode(node)) return readMembers(node.members);
  if (ts.isIntersectionTypeNode(node)) return node.types.flatMap(membersOfAlias);
  return [];
}

function describe(node: Named, area: string, subject?: string): Declaration {
  const declared: Declaration = {
    name: node.name!.text, area, subject, doc: docOf(node), signature: "", members: [],
  };
  if (ts.isInterfaceDeclaration(node) || ts.isClassDeclaration(node)) declared.members = readMembers(node.members);
  else if (ts.isTypeAliasDeclaration(node)) {
    declared.signature = textOf(node).replace(/^export /, "");
    declared.members = membersOfAlias(node.type);
    declared.schema = schemaOf(node.type);
  } else {
    declared.signature = `${textOf(node).slice(0, node.body!.getStart() - node.getStart()).replace(/^export /, "").trim()}`;
    declared.members = [{
      name: declared.name, kind: "method", signatures: [declared.signature], doc: declared.doc,
      parameters: parametersOf(node), returns: node.type && textOf(node.type),
    }];
  }
  return declared;
}

/** Returns the areas of the SDK of a repository. Throws where something has no sentence. */
export function readSDK(root: string): Area[] {
  const read = (file: string) => {
    const path = join(root, "sdk", file);
    return ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.ES2022, true);
  };
  const parse = (file: string) => read(file).statements.filter((one): one is Named =>
    (ts.isInterfaceDeclaration(one) || ts.isTypeAliasDeclaration(one) || ts.isClassDeclaration(one)
      || ts.isFunctionDeclaration(one))
    && !!one.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword));
  const own = new Map(sources.map((area) => [area.name, area.files.flatMap(parse)]));
  const common = shared.flatMap(parse);
  const isSubject = (area: AreaSource, node: Named) => node.name!.text in area.subjects;
  // Of the internals of a file only its subjects, and the types that they name, are public.
  const isPublic = (area: AreaSource, node: Named) =>
    !ts.isFunctionDeclaration(node) && (!ts.isClassDeclaration(node)) || isSubject(area, node);

  /** Where a type of the shared file is described: on the page of the only area that needs it. */
  const uses = new Map<string, Set<string>>();
  const byName = new Map(common.map((node) => [node.name!.text, node]));
  const visit = (node: ts.Node, area: string, seen: Set<string>) => {
    if (ts.isIdentifier(node) && byName.has(node.text) && !seen.has(node.text)) {
      seen.add(node.text);
      uses.set(node.text, (uses.get(node.text) ?? new Set()).add(area));
      const isPage = sources.some((one) => node.text in one.subjects);
      if (!isPage) byName.get(node.text)!.forEachChild((child) => visit(child, area, seen));
    }
    node.forEachChild((child) => visit(child, area, seen));
  };
  for (const area of sources) {
    const nodes = [...own.get(area.name)!, ...common.filter((node) => node.name!.text in area.subjects)];
    for (const node of nodes) node.forEachChild((child) => visit(child, area.name, new Set()));
  }
  const placeOf = (name: string) => {
    const areas = [...(uses.get(name) ?? [])];
    return areas.length === 1 ? areas[0]! : "client";
  };

  const areas = sources.map((area): Area => {
    const subjectNodes = Object.keys(area.subjects).map((name) =>
      [...own.get(area.name)!, ...common].find((node) => node.name!.text === name));
    if (subjectNodes.includes(undefined)) throw new Error(`${area.name}: the SDK lacks one of ${Object.keys(area.subjects)}`);
    const rest = [
      ...own.get(area.name)!.filter((node) => isPublic(area, node)),
      ...common.filter((node) => placeOf(node.name!.text) === area.name && !sources.some((one) => node.name!.text in one.subjects)),
    ].filter((node) => !subjectNodes.includes(node));
    const all = [...subjectNodes as Named[], ...rest].map((node) => describe(node, area.name, area.subjects[node.name!.text]));
    const isOnPage = (one: Declaration) => one.name in area.subjects;
    return { name: area.name, title: area.title, subjects: all.filter(isOnPage), types: all.filter((one) => !isOnPage(one)) };
  });
  addRoomEvents(areas, parse(events));
  addHooks(areas, read(hooks));
  checkSentences(areas);
  return areas;
}

/** The events of a room are those of the service, so that their names stand in a generated file. */
function addRoomEvents(areas: Area[], nodes: Named[]) {
  const wire = nodes.find((node) => node.name!.text === "ServiceRoomEvents") as ts.InterfaceDeclaration;
  const subject = areas.flatMap((area) => area.subjects).find(({ name }) => name === "RoomEvents")!;
  subject.members = [
    ...readMembers(wire.members).filter(({ name }) => name !== "created" && name !== "message").map((one) => ({
      ...one, doc: "The event `room." + one.name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) + "` of the service.",
    })),
    ...subject.members.map((one) => (one.name === "message" ? { ...one, doc: "A message of another player." } : one)),
  ];
}

/** The package for React exports functions whose types are in an interface, and some types of its other file. */
function addHooks(areas: Area[], index: ts.SourceFile) {
  const area = areas.find(({ name }) => name === "react")!;
  const signatures = area.types.find(({ name }) => name === "Hooks")!.members;
  const exported = new Set(index.statements.filter(ts.isExportDeclaration).map(({ exportClause }) => exportClause!)
    .filter(ts.isNamedExports).flatMap(({ elements }) => elements.map(({ name }) => name.text)));
  area.types = area.types.filter(({ name }) => exported.has(name));
  area.subjects = index.statements.filter(ts.isVariableStatement)
    .filter(({ modifiers }) => modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword))
    .map((statement): Declaration => {
      const name = statement.declarationList.declarations[0]!.name.getText();
      const typed = signatures.find((one) => one.name === name);
      if (!typed) throw new Error(`react: the interface Hooks lacks ${name}`);
      const doc = docOf(statement);
      return { name, area: area.name, doc, signature: typed.signatures[0]!, members: [{ ...typed, doc }] };
    });
}

function checkSentences(areas: Area[]) {
  const lacking = areas.flatMap((area) => [
    ...area.subjects.flatMap((one) => [
      ...(one.doc ? [] : [one.name]), ...one.members.filter(({ doc }) => !doc).map(({ name }) => `${one.name}.${name}`),
    ]),
    ...area.types.filter(({ doc }) => !doc).map(({ name }) => name),
  ]);
  if (lacking.length > 0) throw new Error(`the SDK has no sentence on: ${lacking.join(", ")}`);
}
