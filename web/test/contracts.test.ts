// Both contracts pass validators from outside without an error, as whoever loads them would run them.
import { execFile } from "node:child_process";
import { createServer, type Server } from "node:http";
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { Parser, fromFile, fromURL } from "@asyncapi/parser";
import spectralCore, { type RulesetDefinition } from "@stoplight/spectral-core";
import spectralRules from "@stoplight/spectral-rulesets";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";
import { afterAll, beforeAll, expect, test } from "vitest";

const handlers = join(import.meta.dirname, "../../handlers");
const binaries = join(import.meta.dirname, "../node_modules/.bin");
let server: Server;
let url: string;

beforeAll(async () => {
  server = createServer((request, response) => {
    const name = request.url!.slice(1);
    if (!["openapi.yaml", "asyncapi.yaml"].includes(name)) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { "Content-Type": "application/yaml" }).end(readFileSync(join(handlers, name)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => { server.close(); });

test("redocly lint finds no error and no warning in openapi.yaml", async () => {
  const environment = { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
  const { stdout } = await promisify(execFile)(
    join(binaries, "redocly"), ["lint", "openapi.yaml", "--format=json"], { cwd: handlers, env: environment, maxBuffer: 1 << 24 },
  );
  expect(JSON.parse(stdout).totals).toMatchObject({ errors: 0, warnings: 0 });
}, 60_000);

/** The rules of spectral:oas that openapi.yaml does not keep, with the reason. */
const spectralExceptions: Record<string, string> = {
  "operation-description": "Where the summary says all, a description would say it twice.",
};

test("spectral finds no error and no warning in openapi.yaml", async () => {
  const spectral = new spectralCore.Spectral();
  spectral.setRuleset({ extends: [spectralRules.oas as RulesetDefinition] });
  const found = await spectral.run(readFileSync(join(handlers, "openapi.yaml"), "utf8"));
  expect(found.filter((one) => !spectralExceptions[one.code]).map((one) => `${one.code} ${one.path.join(".")}`)).toEqual([]);
  const unused = Object.keys(spectralExceptions).filter((rule) => !found.some((one) => one.code === rule));
  expect(unused, "an exception that nothing needs").toEqual([]);
}, 60_000);

test.each(["a file", "an address"])("the AsyncAPI parser finds no error in asyncapi.yaml, read from %s", async (from) => {
  const parser = new Parser();
  const source = from === "a file" ? fromFile(parser, join(handlers, "asyncapi.yaml")) : fromURL(parser, `${url}/asyncapi.yaml`);
  const { document, diagnostics } = await source.parse();
  expect(diagnostics.map((one) => `${one.path.join(".")}: ${one.message}`)).toEqual([]);
  expect(document!.version()).toMatch(/^3\./);
  expect(document!.messages().all().length).toBeGreaterThan(20);
}, 60_000);

test("openapi-typescript makes types that compile", async () => {
  const text = astToString(await openapiTS(pathToFileURL(join(handlers, "openapi.yaml"))));
  const name = "types.ts";
  const host = ts.createCompilerHost({});
  const read = host.getSourceFile.bind(host);
  host.getSourceFile = (file, target) => file === name ? ts.createSourceFile(file, text, target) : read(file, target);
  const program = ts.createProgram([name], { strict: true, noEmit: true, target: ts.ScriptTarget.ES2022, types: [] }, host);
  const faults = ts.getPreEmitDiagnostics(program).map((one) => ts.flattenDiagnosticMessageText(one.messageText, "\n"));
  expect(faults).toEqual([]);
  expect(text).toContain("createRoom");
  expect(text.match(/^ *\w+\??: Record<string, never>/m)?.[0], "a free object has additionalProperties: true").toBeUndefined();
}, 60_000);
