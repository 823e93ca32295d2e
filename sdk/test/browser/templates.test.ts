// A newcomer's first minutes with each template, from nothing but a node: scaffold, install, and two
// windows of a real Chromium play for a stake. Nothing of the repository is beside them.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { findProgram, startNode, type RealNode } from "../node.js";

let folder: string;
let program: string;
let node: RealNode;
let browser: Browser;
const running: ChildProcess[] = [];

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
// Without what npm, vitest and make set for this test: a newcomer's shell has none of it.
const ofTests = /^(npm_|PARLOR_|NODE_ENV$|VITE)/i;
const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !ofTests.test(name)));
const env: NodeJS.ProcessEnv = { ...inherited, NO_COLOR: "1" }; // Vite colours its output where CI is set
const unreachable = ["--registry", "http://127.0.0.1:9"];
const quiet = ["--no-audit", "--no-fund"];
const minutes = 60_000;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "parlor-templates-"));
  program = findProgram(folder);
  node = await startNode();
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
  });
});

afterEach(async () => {
  await Promise.all(browser.contexts().map((context) => context.close()));
  await Promise.all(running.splice(0).map(end));
});

afterAll(async () => {
  await browser?.close();
  await node?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const run = (cwd: string, command: string, ...args: string[]) =>
  execFileSync(command, args, { cwd, env, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Pastes lines into a shell, and returns once the last of them, a server, has printed a text. */
function paste(cwd: string, lines: string[], until: RegExp): Promise<ChildProcess> {
  const shell = spawn("bash", ["-ec", lines.join("\n")], { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  running.push(shell);
  return new Promise((resolve, reject) => {
    let output = "";
    const read = (chunk: Buffer) => {
      output += chunk;
      if (until.test(output)) resolve(shell);
    };
    shell.stdout!.on("data", read);
    shell.stderr!.on("data", read);
    shell.once("exit", (code) => reject(new Error(`${lines.join("; ")} ended with ${code}: ${output}`)));
  });
}

/** Ends a shell with all that it has started. */
async function end(shell: ChildProcess) {
  if (shell.exitCode !== null || shell.signalCode !== null) return;
  const ended = new Promise((resolve) => shell.once("exit", resolve));
  process.kill(-shell.pid!, "SIGTERM");
  await ended;
}

const status = (page: Page, text: string) => page.locator("#status", { hasText: text }).waitFor();
const balance = (page: Page, text: string) => page.locator("#balance", { hasText: text }).waitFor();

/** Clicks the stone behind which there are as many as to take. */
async function take(page: Page, left: number, taken: number) {
  await status(page, "Your turn");
  const canvas = page.locator("#stones canvas");
  if (!(await canvas.count())) return page.getByTitle(`Take ${taken}`, { exact: true }).click();
  const { width } = (await canvas.boundingBox())!;
  const stone = left - taken;
  return canvas.click({ position: { x: (stone % 6 + 0.5) * width / 6, y: (Math.floor(stone / 6) + 0.5) * width / 6 } });
}

/** Two players with 100.00 each play for 2.50: the second takes the last stone, and has the pot. */
async function playForAStake(address: string) {
  const complaints: string[] = [];
  const open = async () => {
    const page = await (await browser.newContext({ viewport: { width: 700, height: 600 } })).newPage();
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => { if (message.type() === "error") complaints.push(message.text()); });
    await page.goto(address);
    await balance(page, "You have 100.00 GOLD");
    return page;
  };
  const [first, second] = [await open(), await open()];
  await first.click("#play:enabled");
  await status(first, "Waiting for the other player");
  await second.click("#play:enabled");
  await balance(second, "You have 97.50 GOLD");
  await take(first, 12, 3);
  await take(second, 9, 3);
  await second.reload(); // the match goes on
  await take(first, 6, 3);
  await take(second, 3, 3);
  await status(second, "You won 5.00 GOLD");
  await status(first, "You lost");
  await balance(second, "You have 102.50 GOLD");
  await balance(first, "You have 97.50 GOLD, and had 100.00 before this match");
  expect(complaints).toEqual([]);
  if (process.env.SCREENSHOTS) await second.screenshot({ path: join(process.env.SCREENSHOTS, `${new URL(address).port}.png`) });
}

it.each(["vanilla", "react", "phaser"])("the node's package writes the game of `parlor init`: %s", (template) => {
  const [ofNpm, ofInit] = [join(folder, "npm", template), join(folder, "init", template)];
  mkdirSync(join(folder, "npm"), { recursive: true });
  const archive = `${node.url}/sdk/create-parlor-${version}.tgz`;
  const npm = ["--yes", ...unreachable, "--cache", join(folder, "empty")];
  run(join(folder, "npm"), "npx", ...npm, archive, template, "--template", template);
  run(folder, program, "init", ofInit, "--template", template, "--port", new URL(node.url).port);
  const read = (from: string) => Object.fromEntries((readdirSync(from, { recursive: true }) as string[])
    .filter((path) => statSync(join(from, path)).isFile())
    .map((path) => [path, readFileSync(join(from, path), "latin1").replaceAll("http://localhost:", "http://127.0.0.1:")]));
  expect(read(ofNpm)).toEqual(read(join(ofInit, "game")));
  rmSync(ofInit, { recursive: true });
}, minutes);

it("the SDK of a node is installed without a registry, and named in the lockfile by its digest", async () => {
  const game = join(folder, "game");
  mkdirSync(game);
  run(game, "npm", "init", "--yes");
  const name = `parlor-sdk-${version}.tgz`;
  run(game, "npm", "install", ...quiet, ...unreachable, "--cache", join(folder, "empty"), `${node.url}/sdk/${name}`);
  const digests = await (await fetch(`${node.url}/sdk/integrity.json`)).json();
  const lock = JSON.parse(readFileSync(join(game, "package-lock.json"), "utf8"));
  expect(lock.packages["node_modules/@parlor-games/sdk"].integrity).toBe(digests[name]);
  expect(run(game, "node", "-p", 'Object.keys(require("@parlor-games/sdk")).sort().join()')).toBe("ParlorError,init\n");
}, minutes);

it.each(["react", "phaser"])("the game of %s, built, on `parlor dev`", async (template) => {
  const game = join(folder, "npm", template);
  run(game, "npm", "install", "--prefer-offline", ...quiet);
  run(game, "npm", "run", "build");
  const port = await freePort();
  await paste(game, [`npm run preview -- --port ${port} --strictPort`], /Local:/);
  await playForAStake(`http://localhost:${port}`);
  rmSync(join(game, "node_modules"), { recursive: true });
}, 3 * minutes);

/** Follows the lines that `parlor init` prints, up to a page that waits for players. */
async function followInit(home: string, ...args: string[]) {
  mkdirSync(home);
  copyFileSync(program, join(home, "parlor"));
  const [port, redisPort, pagePort] = [await freePort(), await freePort(), await freePort()];
  const page = `http://localhost:${pagePort}`;
  const ports = ["--port", `${port}`, "--redis-port", `${redisPort}`, "--origins", page];
  const printed = run(home, "./parlor", "init", "my-game", ...ports, ...args).trim().split("\n");
  const after = (comment: string) => {
    const start = printed.findIndex((line) => line.startsWith(comment)) + 1;
    expect(start).toBeGreaterThan(0);
    const length = printed.slice(start).findIndex((line) => line.startsWith("#"));
    return printed.slice(start, length < 0 ? undefined : start + length);
  };
  expect(after("# The node, with Docker")).toEqual(["cd my-game", "docker compose up -d --build"]);
  await paste(home, ["export PARLOR_INTERNAL_LISTEN=127.0.0.1:0", ...after("# or without it")], /"made the first game"/);
  if (args.includes("--server")) await paste(home, after("# The game's server"), /online/);
  const steps = after("# The game, in another shell");
  expect(steps.pop()).toBe("npm run dev");
  await paste(home, [...steps, `npm run dev -- --port ${pagePort} --strictPort`], /Local:/);
  return { port, page };
}

it("the lines that `parlor init --server node` prints lead to a server that decides", async () => {
  const home = join(folder, "served");
  const { page } = await followInit(home, "--server", "node");
  await playForAStake(page);
  run(join(home, "my-game/game"), "npm", "run", "build"); // checks the types too
}, 3 * minutes);

it("the lines that `parlor init` prints lead to two windows that play", async () => {
  const home = join(folder, "home");
  const { port, page } = await followInit(home);
  await playForAStake(page);
  run(join(home, "my-game/game"), "npm", "run", "build"); // checks the types too

  // A page whose origin is not listed names the call that lists it, and that call works.
  const settings = readFileSync(join(home, "my-game/parlor.env"), "utf8");
  const adminKey = settings.match(/^PARLOR_ADMIN_KEY=(.+)$/m)![1];
  const call = (method: string, path: string, body: string) => fetch(`http://localhost:${port}${path}`, {
    method, body, headers: { Authorization: `Bearer ${adminKey}`, "Content-Type": "application/json" },
  });
  expect((await call("PATCH", "/api/v1/admin/games/1", '{"origins": []}')).status).toBe(200);
  const refused = await (await browser.newContext()).newPage();
  await refused.goto(page);
  await status(refused, "forbidden");
  const [, method, path, body] = (await refused.locator("#status").textContent())!.match(/needs (\w+) (\S+) (\{.*\})/)!;
  expect((await call(method, path, body)).status).toBe(200);
  await refused.reload();
  await refused.locator("#play:enabled").waitFor();

  // A page says when there is no node.
  await end(running[0]);
  await refused.reload();
  await status(refused, `http://localhost:${port} does not answer`);
}, 3 * minutes);
