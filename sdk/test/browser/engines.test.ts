// The bridges of the engines, with their examples: two windows of a real Chromium play for a stake
// against a real node.
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { startNode, type RealNode } from "../node.js";

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const engines = ["godot", "unity", "defold"];

let node: RealNode;
let server: Server;
let browser: Browser;
let origin: string;
let complaints: string[];

beforeAll(async () => {
  const { outputFiles } = await build({
    entryPoints: engines.map((name) => file(`engines/${name}.ts`)), outdir: file("engines"), bundle: true, write: false,
    format: "esm", target: "es2022", logLevel: "error",
  });
  const scripts = new Map(outputFiles.map(({ path, text }) => [`/${path.split("/").pop()}`, text]));
  scripts.set("/fengari.js", readFileSync(file("../../node_modules/fengari-web/dist/fengari-web.js"), "utf8"));
  node = await startNode({ PARLOR_RATE_LIMITS: "off" });
  server = createServer((request, response) => {
    const { pathname } = new URL(request.url!, "http://localhost");
    const isSource = pathname.startsWith("/engines/");
    const text = isSource ? readFileSync(file(`../..${pathname}`), "utf8") : scripts.get(pathname);
    response.setHeader("Content-Type", isSource || text ? "text/javascript" : "text/html");
    response.end(text ?? `<!doctype html><link rel="icon" href="data:,"><body>
      <script src="${node.url}/sdk/v1.js" crossorigin="anonymous"></script>
      <script src="${node.url}/sdk/bridge.v1.js" crossorigin="anonymous"></script>
      ${pathname === "/defold" ? '<script src="/fengari.js"></script>' : ""}
      <script type="module" src="${pathname}.js"></script>`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"],
  });
});

afterEach(async () => {
  await Promise.all(browser.contexts().map((context) => context.close()));
});

afterAll(async () => {
  await browser?.close();
  server?.close();
  await node?.stop();
});

const sees = (page: Page, text: string) => page.getByText(text, { exact: true }).first().waitFor({ timeout: 20_000 })
  .catch((e: Error) => { throw new Error([e.message, ...complaints].join("\n")); });

/** Opens an example for two players, plays it to its end, and returns the windows. */
async function play(name: string): Promise<Page[]> {
  complaints = [];
  const pages = await Promise.all([6, 2].map(async (roll) => {
    const page = await (await browser.newContext()).newPage();
    page.on("pageerror", (error) => complaints.push(error.stack ?? error.message));
    page.on("console", (message) => { if (message.type() === "error") complaints.push(message.text()); });
    await page.goto(`${origin}/${name}?roll=${roll}`);
    await sees(page, "Ready");
    await sees(page, "You have 100.00 Gold");
    return page;
  }));
  const [first, second] = pages as [Page, Page];
  for (const page of pages) {
    await page.getByText("Play for 2.50").click();
    await sees(page, "You have 97.50 Gold"); // it has a room: two who ask at once open one each
  }
  for (const page of pages) await sees(page, "The pot is 5.00 Gold");
  for (const page of pages) await page.getByText("Roll").click();
  await sees(first, "You won 5.00 Gold");
  await sees(first, "You have 102.50 Gold");
  await sees(second, "You lost");
  expect((await node.call(node.adminKey, "GET", "admin/audit")).balanced).toBe(true);
  expect(complaints).toEqual([]);
  return pages;
}

it("Godot: the GDScript, translated, over a JavaScriptBridge", async () => {
  await play("godot");
});

it("Unity: the .jslib, whose texts are all freed", async () => {
  const [page] = await play("unity");
  expect(await page!.evaluate(() => (window as any).leaks())).toEqual([]);
  expect(Math.abs(await page!.evaluate(() => (window as any).time()) - Date.now())).toBeLessThan(60_000);
  await page!.evaluate(() => (window as any).closeGame());
  expect(complaints).toEqual([]);
});

it("Defold: the Lua, which asks once in a frame", async () => {
  await play("defold");
});
