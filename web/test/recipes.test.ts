// The code of the recipes fits the types of the SDK.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { expect, test } from "vitest";

const content = join(import.meta.dirname, "../src/docs/content/recipes");
const types = join(import.meta.dirname, "../../sdk/dist/v1.d.ts");

/** What a recipe leaves to the game. */
const game = `
declare function show(...what: unknown[]): void;
declare function draw(moves: string[]): void;
declare function areLegal(moves: string[]): boolean;
declare function startGame(room: unknown): void;
declare const me: { x: number; y: number; a: number };
`;

test("the code of every recipe compiles", () => {
  const sources = new Map(readdirSync(content).map((name) => {
    const text = readFileSync(join(content, name), "utf8");
    const code = [...text.matchAll(/```typescript\n([\s\S]*?)```/g)].map(([, block]) => block).join("\n");
    expect(code, name).toContain("Parlor.init");
    return [`${name}.ts`, `/// <reference path="${types}" />\n${code}\n${game}\nexport {};\n`];
  }));
  const options: ts.CompilerOptions = {
    strict: true, useUnknownInCatchVariables: false, allowUmdGlobalAccess: true, noEmit: true, types: [],
    target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, lib: ["lib.es2023.d.ts", "lib.dom.d.ts"],
  };
  const host = ts.createCompilerHost(options);
  const read = host.getSourceFile.bind(host);
  host.getSourceFile = (path, target) =>
    sources.has(path) ? ts.createSourceFile(path, sources.get(path)!, target) : read(path, target);
  const faults = ts.getPreEmitDiagnostics(ts.createProgram([...sources.keys()], options, host)).map((one) => {
    const line = one.file?.getLineAndCharacterOfPosition(one.start ?? 0).line;
    return `${one.file?.fileName} ${line}: ${ts.flattenDiagnosticMessageText(one.messageText, "\n")}`;
  });
  expect(faults).toEqual([]);
}, 120_000);
