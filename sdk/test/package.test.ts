// What is published: sizes, freshness, formats and types.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runInNewContext } from "node:vm";
import { gunzipSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";

const url = (name: string) => new URL(`../${name}`, import.meta.url);
const read = (name: string) => readFileSync(url(name), "utf8");
const readBytes = (name: string) => new Uint8Array(readFileSync(url(name)));
const { version } = JSON.parse(read("package.json"));

describe("dist", () => {
  it("has at most 9 KiB, compressed", () => {
    for (const name of ["v1.js", "v1.mjs"]) {
      expect(gzipSync(read(`dist/${name}`), { level: 9 }).length).toBeLessThanOrEqual(9 << 10);
    }
  });

  it("has an entry point for game servers of at most 8 KiB, compressed, the same in both formats", async () => {
    const names = ["GameError", "ParlorError", "filePositions", "server", "verifyWebhook"];
    for (const name of ["server.v1.mjs", "server.v1.cjs"]) {
      expect(gzipSync(read(`dist/${name}`), { level: 9 }).length).toBeLessThanOrEqual(8 << 10);
    }
    expect(Object.keys(await import("../dist/server.v1.mjs" as string)).sort()).toEqual(names);
    expect(Object.keys(createRequire(import.meta.url)("../dist/server.v1.cjs")).sort()).toEqual(names);
  });

  it("has devtools of at most 10 KiB, compressed, also under the name that the core loads", () => {
    expect(gzipSync(read("dist/devtools.v1.js"), { level: 9 }).length).toBeLessThanOrEqual(10 << 10);
    expect(read("dist/debug.v1.js")).toBe(read("dist/devtools.v1.js"));
    expect(read("dist/v1.js")).toContain("/sdk/debug.v1.js");
  });

  it("is stale with a file of another text", async () => { // `npm run check:fresh` compares with a build
    const { staleFiles } = await import(url("scripts/check_fresh.mjs").href);
    const texts = Object.fromEntries(readdirSync(url("src/generated")).map((name) => [name, read(`src/generated/${name}`)]));
    expect(staleFiles("src/generated", texts)).toEqual([]);
    expect(staleFiles("src/generated", { ...texts, "codes.ts": "" })).toEqual(["src/generated/codes.ts"]);
  });

  it("names the digests of numbered scripts and of packages", () => {
    const digests = Object.entries<string>(JSON.parse(read("dist/integrity.json")));
    const packages = digests.map(([name]) => name).filter((name) => name.endsWith(".tgz"));
    expect(packages).toEqual(readdirSync(url("dist")).filter((name) => name.endsWith(".tgz")).sort());
    expect(digests.map(([name]) => name)).toEqual([`${version}.js`, `${version}.mjs`, ...packages]);
    for (const [name, digest] of digests) {
      const [algorithm] = digest.split("-");
      expect(digest).toBe(`${algorithm}-${createHash(algorithm).update(readBytes(`dist/${name}`)).digest("base64")}`);
    }
  });

  it("has packages with the files that npm publishes, of one version, and without a private name of a machine", async () => {
    const { listFiles, packageFolders } = await import(url("scripts/pack.mjs").href);
    expect(packageFolders).toContain("create");
    for (const folder of packageFolders) {
      const manifest = JSON.parse(read(join(folder, "package.json")));
      expect(manifest).toMatchObject({ version, license: "Apache-2.0", publishConfig: { access: "public", provenance: true } });
      expect(manifest.repository.url).toBe("git+https://github.com/parlor-games/parlor.git");
      const archive = `dist/${manifest.name.replace("@parlor-games/", "parlor-")}-${version}.tgz`;
      // Any tar reads it.
      const listed = execFileSync("tar", ["-tzf", fileURLToPath(url(archive))], { encoding: "utf8" }).trim().split("\n");
      expect(listed).toEqual(listFiles(folder).map((path: string) => `package/${path}`));
      expect(listed).toEqual(expect.arrayContaining(["package/package.json", "package/README.md"]));
      expect(listed.filter((path) => /node_modules|integrity|\bsrc\/.*\.test/.test(path))).toEqual([]);
      expect(gunzipSync(readBytes(archive)).toString("latin1")).not.toMatch(/\/tmp\/|\/home\//);
    }
  });

  it("is stale with a package of other files, and with one too many", async () => {
    const { stalePackages } = await import(url("scripts/pack.mjs").href);
    const copy = mkdtempSync(join(tmpdir(), "parlor-dist-"));
    try {
      cpSync(url("dist"), copy, { recursive: true });
      cpSync(join(copy, `parlor-sdk-${version}.tgz`), join(copy, `create-parlor-${version}.tgz`));
      cpSync(join(copy, `parlor-sdk-${version}.tgz`), join(copy, "parlor-other.tgz"));
      expect(stalePackages(copy).sort()).toEqual(
        [`dist/create-parlor-${version}.tgz`, "dist/integrity.json", "dist/parlor-other.tgz"]);
    } finally {
      rmSync(copy, { recursive: true });
    }
  });

  it("is ES2020 without eval, and no private name of a machine is in it", () => {
    for (const name of readdirSync(url("dist")).filter((file) => !file.endsWith(".tgz"))) {
      const text = read(`dist/${name}`);
      expect(text).not.toMatch(/\beval\(|new Function|\?\?=|\|\|=|&&=|#[a-z]+[(=]|\/tmp\/|\/home\//);
    }
  });

  it("exports the same from every format, and touches no global when it is loaded", async () => {
    const names = ["ParlorError", "init"];
    const require = createRequire(import.meta.url);
    expect(Object.keys(require("../dist/v1.cjs")).sort()).toEqual(names);
    expect(Object.keys(await import("../dist/v1.mjs" as string)).sort()).toEqual(names);
    const globals: any = { URL };
    globals.globalThis = globals;
    runInNewContext(read("dist/v1.js"), globals);
    expect(Object.keys(globals.Parlor).sort()).toEqual(names);
    expect(Object.keys(globals).sort()).toEqual(["Parlor", "URL", "globalThis"]);
    runInNewContext(read("dist/v1.cjs"), { module: {}, exports: {} });
    for (const [entry, name] of [["boards", "createBoards"], ["tournaments", "createTournaments"]]) {
      expect(Object.keys(await import(`../dist/${entry}.v1.mjs` as string))).toEqual([name]);
      runInNewContext(read(`dist/${entry}.v1.js`), globals);
      expect(typeof globals.Parlor[name]).toBe("function");
    }
  });

  it("works when its names are shortened: no internal one is on the wire or in the surface", () => {
    const shortened = [...read("scripts/build.mjs").match(/internalNames = \{([\s\S]*?)\};/)![1].matchAll(/(\w+): "/g)];
    const surface = read("dist/v1.d.mts") + read("../handlers/openapi.yaml") + read("../handlers/asyncapi.yaml");
    const members = new Set([...surface.matchAll(/(?:^|[\s{,])(\w+)\??[:(<]/gm)].map((m) => m[1]));
    expect(shortened.map((m) => m[1]).filter((name) => members.has(name))).toEqual([]);
    // What is asked of the browser keeps its name.
    for (const name of ["request", "getItem", "setItem", "getAllKeys", "addEventListener", "getRandomValues", "abort",
      "result", "onsuccess", "createObjectStore", "bufferedAmount", "onload"]) {
      expect(read("dist/v1.js")).toMatch(new RegExp(`[.]${name}\\b|\\b${name}[(]|"${name}"`));
      expect(shortened.map((m) => m[1])).not.toContain(name);
    }
  });

  it("has the reviewed surface", async () => {
    const { apiReport } = await import(url("scripts/report_api.mjs").href);
    expect(apiReport()).toBe(read("api.md"));
  });
});

describe("misuse", () => {
  it("throws a TypeError at once, with the fix", async () => {
    const { init } = await import("../src/index.js");
    const WebSocket = class {};
    const cases: [any, string][] = [
      [undefined, "gameId"], [{}, "gameId"], [{ gameId: "game" }, "gameId"], [{ gameId: 1.5 }, "gameId"],
      [{ gameId: 1 }, "baseUrl"], [{ gameId: 1, baseUrl: "api.example" }, "baseUrl"],
      [{ gameId: 1, baseUrl: "https://api.example", getToken: "token", WebSocket }, "getToken"],
      [{ gameId: 1, baseUrl: "https://api.example" }, "WebSocket"],
    ];
    for (const [options, word] of cases) {
      expect(() => init(options)).toThrow(TypeError);
      expect(() => init(options)).toThrow(word);
    }
  });
});
