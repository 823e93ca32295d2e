// The examples compile against the built types, and bundle with the built module.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import ts from "typescript";
import { describe, expect, it } from "vitest";

const folder = fileURLToPath(new URL("../examples/", import.meta.url));
const pages = readdirSync(folder).filter((name) => name.endsWith(".ts"));

describe("the examples", () => {
  it("compile", () => {
    const { config } = ts.readConfigFile(join(folder, "tsconfig.json"), ts.sys.readFile);
    const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, folder);
    expect(fileNames).toHaveLength(pages.length);
    const faults = ts.getPreEmitDiagnostics(ts.createProgram(fileNames, options)).map(({ file, start, messageText }) =>
      `${file?.fileName}:${file && ts.getLineAndCharacterOfPosition(file, start!).line + 1} ` +
      ts.flattenDiagnosticMessageText(messageText, "\n"));
    expect(faults).toEqual([]);
  }, 120_000);

  it("bundle", async () => {
    const { outputFiles } = await build({
      absWorkingDir: folder, entryPoints: pages, outdir: folder, bundle: true, write: false, format: "esm",
      target: "es2022", external: ["phaser"], logLevel: "error",
    });
    expect(outputFiles).toHaveLength(pages.length);
    for (const { text } of outputFiles) expect(text).toContain("/api/v1/");
  });
});
