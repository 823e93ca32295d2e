// The package as npm publishes it, installed in a folder of its own and used from there.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const run = (cwd: string, command: string, ...args: string[]) =>
  execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "parlor-installed-"));
  const [{ filename }] = JSON.parse(run(root, "npm", "pack", "--json", "--silent", "--pack-destination", folder));
  writeFileSync(join(folder, "package.json"), '{"name":"a-game","private":true}');
  // It has no dependencies, so nothing is fetched.
  run(folder, "npm", "install", "--offline", "--no-audit", "--no-fund", "--loglevel=error", join(folder, filename));
}, 180_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const use = `
const parlor = init({ gameId: "1", baseUrl: "http://127.0.0.1:1", WebSocket: class {}, storage: false });
parlor.ready.catch((error) => {
  console.log(error instanceof ParlorError, error.code, parlor.state);
});
parlor.close();
`;

describe("the installed package", () => {
  it.each([
    ["ESM", "game.mjs", 'import { init, ParlorError } from "@parlor-games/sdk";'],
    ["CommonJS", "game.cjs", 'const { init, ParlorError } = require("@parlor-games/sdk");'],
  ])("runs as %s", (_, name, line) => {
    writeFileSync(join(folder, name), line + use);
    expect(run(folder, process.execPath, name).trim()).toBe("true closed closed");
  }, 60_000);

  it.each([
    ["an ES module", "game.mts", "NodeNext"], ["CommonJS", "game.cts", "NodeNext"], ["a bundler", "page.ts", "Bundler"],
  ])("has types for %s", (_, name, resolution) => {
    const text = `import { init, type Parlor, type Room } from "@parlor-games/sdk";
export const parlor: Parlor<{ move: { x: number } }> = init<{ move: { x: number } }>({ gameId: 1 });
export async function play(room: Room<{ move: { x: number } }>) {
  room.send("move", { x: 1 });
  // @ts-expect-error: a payload of another type
  room.send("move", { y: 1 });
}
`;
    writeFileSync(join(folder, name), text);
    const flags = ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2022,dom"];
    const module = resolution === "Bundler" ? "esnext" : resolution;
    const compiler = join(root, "node_modules/typescript/bin/tsc");
    const { stdout } = spawnSync(
      process.execPath, [compiler, ...flags, "--module", module, "--moduleResolution", resolution, name],
      { cwd: folder, encoding: "utf8" },
    );
    expect(stdout).toBe("");
  }, 120_000);

  it("is clean for publint and for are-the-types-wrong", () => {
    expect(run(root, "npm", "run", "--silent", "check:package")).toContain("No problems found");
  }, 180_000);
});
