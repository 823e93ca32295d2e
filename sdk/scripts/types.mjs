// Joins the declarations of the public surface into one file.
import { join } from "node:path";
import ts from "typescript";

/**
 * Returns the declarations that an entry point exports, and those that they refer to, in the order of
 * their files. What is not exported there is not exported here.
 */
export function bundleTypes(root, source = "src/index.ts") {
  const { config } = ts.readConfigFile(join(root, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const entry = join(root, source);
  const program = ts.createProgram([entry], { ...options, noEmit: false, emitDeclarationOnly: true });
  const checker = program.getTypeChecker();
  const module = checker.getSymbolAtLocation(program.getSourceFile(entry));
  const exported = new Set(checker.getExportsOfModule(module).map((symbol) => symbol.name));

  const declarations = new Map(); // by name
  program.emit(undefined, (path, text) => {
    const file = ts.createSourceFile(path, text, ts.ScriptTarget.ES2020, true);
    for (const statement of file.statements) {
      const name = statement.name?.text;
      if (name && declarations.has(name) && exported.has(name)) throw new Error(`${name} is declared twice`);
      if (name && !declarations.get(name)?.isPublic) declarations.set(name, statement);
    }
  });

  const wanted = new Set();
  function want(name) {
    const statement = declarations.get(name);
    if (!statement || wanted.has(statement)) return;
    wanted.add(statement);
    (function visit(node) {
      if (ts.isIdentifier(node) && node.parent.name !== node) want(node.text);
      node.forEachChild(visit);
    })(statement);
  }
  exported.forEach(want);

  const texts = [...declarations].filter(([, statement]) => wanted.has(statement)).map(([name, statement]) => {
    const text = statement.getFullText().trim();
    return exported.has(name) ? text : text.replace(/^export /m, "");
  });
  return `${texts.join("\n")}\n\nexport {};\n`;
}
