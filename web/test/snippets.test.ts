// The scripts of the documents fit the types of the SDK: blocks of TypeScript, components of React, and
// module scripts in blocks of HTML. tests/docs runs the commands and knows which languages are left to this file.
import { readFileSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";
import ts from "typescript";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const types = join(root, "sdk/dist/v1.d.ts");
const folders = [".", "docs", "docs/decisions", "sdk", "sdk/react", "sdk/examples", "web/src/docs/content",
  ...readdirSync(join(root, "web/src/docs/content"), { withFileTypes: true }).filter((one) => one.isDirectory())
    .map(({ name }) => `web/src/docs/content/${name}`)];
const documents = folders.flatMap((folder) => readdirSync(join(root, folder))
  .filter((name) => name.endsWith(".md") && !(folder === "sdk" && name === "api.md")) // which is generated from the types
  .map((name) => join(root, folder, name)));

/** What a document leaves to the game; a script may have its own instead. */
const game = `
declare function show(...what: unknown[]): void;
declare function showResult(payouts: unknown): void;
declare function move(from: number, payload: unknown): void;
declare function draw(moves: string[][]): void;
declare function startGame(room: unknown): void;
declare const process: { env: Record<string, string | undefined>; once(signal: string, fn: () => void): void };
declare const me: { x: number; y: number; a: number };
`;

/** What the elements of a page are to its scripts: browsers name them by their id. */
const elements = (html: string) =>
  [...html.matchAll(/<(\w+)[^>]*\bid="(\w+)"/g)].map(([, , id]) => `declare const ${id}: HTMLElement;`).join("\n");

interface Script { name: string; code: string; kind: "recipe" | "component" | "page" }

function scriptsOf(path: string): Script[] {
  const text = readFileSync(path, "utf8");
  const name = relative(root, path).replaceAll("/", "-");
  // A program for Node is plain JavaScript. The other blocks of a recipe go on where the one before ended.
  const all = [...text.matchAll(/```(?:typescript|ts)\n([\s\S]*?)```/g)].map(([, block]) => block!);
  const isProgram = (block: string) => block.includes("process.env");
  const blocks = all.filter((block) => !isProgram(block)).join("\n");
  const pages = [...text.matchAll(/```(?:html|xml)\n([\s\S]*?)```/g)].map(([, html]) => [
    elements(html!), ...[...html!.matchAll(/<script(?![^>]* src=)[^>]*>([\s\S]*?)<\/script>/g)].map(([, script]) => script),
  ].join("\n"));
  const components = [...text.matchAll(/```tsx\n([\s\S]*?)```/g)].map(([, code]) => code!); // each a file of its own
  return [
    { name: `${name}.0.ts`, code: blocks, kind: "recipe" as const },
    ...[...pages, ...all.filter(isProgram)].map((code, n) => ({ name: `${name}.${n + 1}.ts`, code, kind: "page" as const })),
    ...components.map((code, n) => ({ name: `${name}.${n}.tsx`, code, kind: "component" as const })),
  ].filter(({ code }) => code);
}

/** Returns what the compiler says of scripts. It is not strict with what a page has in its HTML: that is no TypeScript. */
function faultsOf(scripts: Script[], strict: boolean): string[] {
  const sources = new Map(scripts.map(({ name, code }) =>
    [name, `/// <reference path="${types}" />\n${code}\nexport {};\n`]));
  sources.set("game.d.ts", game);
  const options: ts.CompilerOptions = {
    strict, allowUmdGlobalAccess: true, noEmit: true, types: [],
    target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, lib: ["lib.es2023.d.ts", "lib.dom.d.ts"],
    moduleResolution: ts.ModuleResolutionKind.Bundler, jsx: ts.JsxEmit.ReactJSX,
    paths: {
      "@parlor-games/react": [join(root, "sdk/react/dist/index.d.mts")],
      "react": [join(root, "sdk/node_modules/@types/react/index.d.ts")],
      "react/jsx-runtime": [join(root, "sdk/node_modules/@types/react/jsx-runtime.d.ts")],
      "react-dom/client": [join(root, "sdk/node_modules/@types/react-dom/client.d.ts")],
      "@parlor-games/sdk": [join(root, "sdk/dist/v1.d.mts")],
      ...Object.fromEntries(["boards", "tournaments", "binary", "server"].map((name) =>
        [`@parlor-games/sdk/${name}`, [join(root, `sdk/dist/${name}.v1.d.mts`)]])),
    },
  };
  const host = ts.createCompilerHost(options);
  const read = host.getSourceFile.bind(host);
  host.getSourceFile = (path, target) =>
    sources.has(path) ? ts.createSourceFile(path, sources.get(path)!, target) : read(path, target);
  return ts.getPreEmitDiagnostics(ts.createProgram([...sources.keys()], options, host)).map((one) => {
    const line = one.file?.getLineAndCharacterOfPosition(one.start ?? 0).line;
    return `${one.file?.fileName} ${line}: ${ts.flattenDiagnosticMessageText(one.messageText, "\n")}`;
  });
}

const scripts = documents.flatMap(scriptsOf);
const [recipes, components, pages] = (["recipe", "component", "page"] as const)
  .map((kind) => scripts.filter((one) => one.kind === kind)) as [Script[], Script[], Script[]];

test("every recipe and every page of the documents has a script that begins", () => {
  const names = scripts.map(({ name }) => name).join(" ");
  for (const wanted of ["turn-based", "arena", "duel", "consensus", "game-server", "first-game", "sdk-README"]) expect(names).toContain(wanted);
  for (const { name, code } of [...recipes, ...pages]) expect(code, name).toMatch(/\b(init|server)[(<]/);
});

test("the TypeScript of every document compiles, and its components", () => {
  const names = components.map(({ name }) => name).join(" ");
  for (const wanted of ["start-react", "sdk-react.md", "sdk-react-README"]) expect(names).toContain(wanted);
  const misused = "import { useParlor } from '@parlor-games/react';\nexport const name = () => useParlor().user.username;";
  expect(faultsOf([...recipes, ...components, { name: "misused.tsx", code: misused, kind: "component" }], true))
    .toEqual([expect.stringMatching(/^misused.tsx .*null/)]);
}, 120_000);

test("the scripts of every page in a document compile", () => {
  expect(pages.length).toBeGreaterThanOrEqual(2);
  const misspelled = { ...pages[0]!, name: "misspelled.ts", code: `${pages[0]!.code}\nParlor.start();` };
  expect(faultsOf([...pages, misspelled], false)).toEqual([expect.stringMatching(/^misspelled.ts .*start/)]);
}, 120_000);
