// Joins the declarations of the public surface into one file.
import { join } from "node:path";
import ts from "typescript";

/** Returns the name of a schema of the service, where a type is one: `Schemas["Room"]`. */
function schemaOf(node) {
  const isSchema = ts.isIndexedAccessTypeNode(node) && ts.isLiteralTypeNode(node.indexType) &&
    /^(Schemas|components\["schemas"\])$/.test(node.objectType.getText());
  return isSchema && node.indexType.literal.text;
}

/**
 * Returns the declarations that an entry point exports, and those that they refer to, in the order of
 * their files; of the service's schemas too only those. What is not exported there is not exported
 * here. `others` are entry points, by the name that imports one: what one of them exports is imported.
 */
export function bundleTypes(root, source = "src/index.ts", others = {}) {
  const { config } = ts.readConfigFile(join(root, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const sources = [source, ...Object.values(others)].map((path) => join(root, path));
  const program = ts.createProgram(sources, { ...options, noEmit: false, emitDeclarationOnly: true });
  const checker = program.getTypeChecker();
  const [exported, ...exportedElsewhere] = sources.map((path) => {
    const module = checker.getSymbolAtLocation(program.getSourceFile(path));
    return new Set(checker.getExportsOfModule(module).map((symbol) => symbol.name));
  });

  const declarations = new Map(); // by name
  program.emit(undefined, (path, text) => {
    const file = ts.createSourceFile(path, text, ts.ScriptTarget.ES2020, true);
    for (const statement of file.statements) {
      const name = (statement.name ?? statement.declarationList?.declarations[0].name)?.text;
      if (name && declarations.has(name) && exported.has(name)) throw new Error(`${name} is declared twice`);
      if (name && !declarations.get(name)?.isPublic) declarations.set(name, statement);
    }
  });
  const all = declarations.get("components")?.members.find((member) => member.name.text === "schemas").type.members ?? [];
  const schemas = new Map(all.map((schema) => [schema.name.text, schema]));

  const wanted = new Set(); // declarations and schemas
  const imports = new Map(Object.keys(others).map((name) => [name, []]));
  function want(name) {
    const statement = declarations.get(name);
    if (!statement || wanted.has(statement)) return;
    const other = exported.has(name) ? -1 : exportedElsewhere.findIndex((names) => names.has(name));
    if (other >= 0) {
      const names = imports.get(Object.keys(others)[other]);
      if (!names.includes(name)) names.push(name);
      return;
    }
    wanted.add(statement);
    if (name !== "components") visit(statement);
  }
  function visit(node) {
    const schema = schemas.get(schemaOf(node));
    if (schema && !wanted.has(schema)) {
      wanted.add(schema);
      visit(schema);
    }
    if (ts.isIdentifier(node) && node.parent.name !== node) want(node.text);
    node.forEachChild(visit);
  }
  exported.forEach(want);

  const texts = [...imports].filter(([, names]) => names.length).map(([from, names]) =>
    `import type { ${names.sort().join(", ")} } from "${from}";`);
  for (const [name, statement] of declarations) {
    if (!wanted.has(statement)) continue;
    let text = statement.getFullText().trim();
    if (name === "components") {
      const members = [...schemas.values()].filter((schema) => wanted.has(schema)).map((schema) => schema.getFullText());
      text = `interface components {\n    schemas: {${members.join("")}\n    };\n}`;
    }
    texts.push(exported.has(name) ? text : text.replace(/^export /m, ""));
  }
  return `${texts.join("\n")}\n\nexport {};\n`;
}
