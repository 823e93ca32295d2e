// Generators from outside make TypeScript clients of openapi.yaml, which compile and play for money.
// tests/clients does the same with a generator for Go.
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import * as esbuild from "esbuild";
import ts from "typescript";
import { expect, test } from "vitest";
import { startNode } from "./node";

const web = join(import.meta.dirname, "..");
const contract = join(web, "../handlers/openapi.yaml");
const run = promisify(execFile);

interface Generator { file: string; generate(folder: string, url: string): Promise<unknown> }

const generators: [name: string, generator: Generator][] = [
  ["@hey-api/openapi-ts", {
    file: "hey_api.ts",
    generate: (folder) => run(join(web, "node_modules/.bin/openapi-ts"), ["-i", contract, "-o", join(folder, "client"), "-c", "@hey-api/client-fetch"]),
  }],
  ["orval", {
    file: "orval.ts",
    generate: (folder, baseUrl) => {
      const parlor = { input: { target: contract }, output: { target: join(folder, "client/api.ts"), client: "fetch", baseUrl } };
      const config = join(folder, "orval.config.mjs");
      writeFileSync(config, `export default ${JSON.stringify({ parlor })};\n`);
      return run(join(web, "node_modules/.bin/orval"), ["--config", config], { cwd: web });
    },
  }],
];

test.each(generators)("a client of %s compiles and plays", async (_, { file, generate }) => {
  const folder = mkdtempSync(join(web, "node_modules/.clients-")); // below web, where packages are found
  const node = await startNode();
  try {
    cpSync(join(import.meta.dirname, "clients"), folder, { recursive: true });
    await generate(folder, node.url);
    expect(faultsOf(join(folder, file))).toEqual([]);
    const program = join(folder, "play.mjs");
    await esbuild.build({ entryPoints: [join(folder, file)], bundle: true, platform: "node", format: "esm", outfile: program, logLevel: "error" });
    const printed = [...node.printed.matchAll(/\b(URL|[A-Z]+_TOKEN|[A-Z]+_KEY)=(\S+)/g)].map(([, name, value]) => [name, value]);
    await run(process.execPath, [program], { env: { ...process.env, ...Object.fromEntries(printed) } });
  } finally {
    await node.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}, 120_000);

/** Returns what TypeScript says of a file and of what it imports. */
function faultsOf(file: string): string[] {
  const program = ts.createProgram([file], {
    strict: true, noEmit: true, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, types: ["node"],
    moduleResolution: ts.ModuleResolutionKind.Bundler, lib: ["lib.es2023.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"], skipLibCheck: true,
    typeRoots: [join(web, "node_modules/@types")],
  });
  return ts.getPreEmitDiagnostics(program).map((one) =>
    `${one.file?.fileName.split("/").at(-1)}: ${ts.flattenDiagnosticMessageText(one.messageText, "\n")}`.slice(0, 400));
}
