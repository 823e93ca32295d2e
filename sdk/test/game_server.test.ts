// The recipe of a game server as a reader follows it: the SDK is installed from a node, without a registry, and
// the program of the page runs beside two players.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import WebSocket from "ws";
import { createClient } from "../src/client.js";
import type { Parlor } from "../src/types.js";
import { MemoryStorage } from "./fake_service.js";
import { startNode, type RealNode } from "./node.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, "sdk/package.json"), "utf8"));
const page = readFileSync(join(root, "web/src/docs/content/recipes/game-server.md"), "utf8");
const program = /```typescript\n(import [\s\S]*?)```/.exec(page)![1];

let node: RealNode;
let folder: string;
let gameId: number;
let key: string;
const running: ChildProcess[] = [];
const clients: Parlor[] = [];

beforeAll(async () => {
  node = await startNode();
  const made = await node.call(node.adminKey, "POST", "admin/games", { name: "Dice", settings: { feed: true } });
  gameId = made.game.id;
  key = made.serverKey;
  folder = mkdtempSync(join(tmpdir(), "parlor-dice-"));
  writeFileSync(join(folder, "package.json"), '{"name":"dice","private":true}');
  writeFileSync(join(folder, "server.mjs"), program);
  const npm = ["--registry", "http://127.0.0.1:9", "--no-audit", "--no-fund", "--loglevel=error", "--cache", join(folder, "empty")];
  execFileSync("npm", ["install", ...npm, `${node.url}/sdk/parlor-sdk-${version}.tgz`], { cwd: folder, stdio: "pipe" });
}, 300_000);

afterAll(async () => {
  clients.forEach((client) => client.close());
  await Promise.all(running.map((child) => end(child)));
  await node?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function end(child: ChildProcess, signal: NodeJS.Signals = "SIGTERM") {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill(signal);
  await ended;
}

/** Runs the program, and returns it once it has printed a text. */
function run(until: RegExp): Promise<ChildProcess> {
  const env = { ...process.env, URL: node.url, SERVER_KEY: key };
  const child = spawn(process.execPath, ["server.mjs"], { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
  running.push(child);
  return new Promise((resolve, reject) => {
    let output = "";
    const read = (chunk: Buffer) => {
      output += chunk;
      if (until.test(output)) resolve(child);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("exit", (code) => reject(new Error(`ended with ${code}: ${output}`)));
  });
}

function player(username: string): Parlor {
  const client = createClient({ gameId, username, storage: new MemoryStorage(), WebSocket }, node.url, () => {});
  clients.push(client);
  return client;
}

it("has thirty lines", () => {
  expect(program.split("\n").filter((line) => line.trim()).length).toBeLessThanOrEqual(31);
});

it.runIf(!globalThis.WebSocket)("names the package that Node 20 needs", async () => {
  await run(/TypeError: Node 20 has no WebSocket: npm install ws/);
}, 30_000);

it("rolls dice for two players, also after it was killed, and ends their room", async () => {
  symlinkSync(join(root, "sdk/node_modules/ws"), join(folder, "node_modules/ws")); // as npm install ws does
  const first = await run(/online/);
  const [ada, bob] = [player("Ada"), player("Bob")];
  await Promise.all([ada.ready, bob.ready]);
  const room = await ada.rooms.create({ maxPlayers: 2, autoStart: true });
  const same = await bob.rooms.join(room.roomId);
  const mine = await room.call<number>("roll", {});
  expect(mine).toBeGreaterThan(0);
  await expect(room.call("roll", {})).rejects.toMatchObject({ code: "game_error", data: { gameCode: "rolled_already" } });
  await end(first, "SIGKILL");
  await run(/online/);
  const finished = room.once("finished");
  let theirs: number | undefined;
  while (!theirs) { // a node learns of a killed server by the end of its socket, and of the next one within a second
    theirs = await same.call<number>("roll", {}).catch((e) => {
      expect(["no_server", "server_timeout"]).toContain(e.code);
      return undefined;
    });
    if (!theirs) await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const { results } = await finished as any;
  const placeOf = (client: Parlor) => results.find((one: any) => one.userId === client.user!.id).place;
  expect([placeOf(ada), placeOf(bob)]).toEqual([mine >= theirs ? 1 : 2, theirs >= mine ? 1 : 2]);
}, 60_000);
