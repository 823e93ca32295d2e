// The hooks in two windows of a real Chromium under StrictMode, from a page that a server rendered.
import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startNode, type RealNode } from "../node.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
let node: RealNode;
let server: Server;
let browser: Browser;

async function bundle(contents: string, platform: "browser" | "node") {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: `${root}test/browser`, loader: "tsx" }, bundle: true, write: false, platform,
    format: platform === "node" ? "cjs" : "esm", target: "es2022", jsx: "automatic", logLevel: "error",
    external: platform === "node" ? ["react", "react-dom"] : [], define: { "process.env.NODE_ENV": '"development"' },
    alias: {
      "@parlor-games/react": `${root}react/dist/index.mjs`, "@parlor-games/sdk": `${root}dist/v1.mjs`,
      "@parlor-games/sdk/boards": `${root}dist/boards.v1.mjs`,
    },
  });
  return outputFiles[0].text;
}

beforeAll(async () => {
  node = await startNode({ PARLOR_RATE_LIMITS: "off" });
  const app = `import { App } from "./react_page.tsx";\n`;
  const script = await bundle(`${app}import { hydrateRoot } from "react-dom/client";
    hydrateRoot(document.getElementById("root"), <App api="${node.url}" />);`, "browser");
  const onServer = await bundle(`${app}import { renderToString } from "react-dom/server";
    module.exports = renderToString(<App api="${node.url}" />);`, "node");
  const module = { exports: "" };
  new Function("require", "module", onServer)(createRequire(import.meta.url), module);
  expect(module.exports).toContain("idle unknown");
  server = createServer(({ url }, response) => {
    response.setHeader("Content-Type", url === "/page.js" ? "text/javascript" : "text/html");
    response.end(url === "/page.js" ? script : `<!doctype html><link rel="icon" href="data:,">` +
      `<div id="root">${module.exports}</div><script type="module" src="/page.js"></script>`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"],
  });
});

afterAll(async () => {
  await browser?.close();
  server?.close();
  await node?.stop();
});

it("two players see each other, and nothing is done twice", async () => {
  await node.call(node.adminKey, "PATCH", "admin/games/1", { settings: { stateKeys: { score: "host" } } });
  await node.call(node.adminKey, "POST", "admin/games/1/leaderboards", { board: "react", name: "React" });
  const complaints: string[] = [];
  const asked: string[][] = [];
  const pages: Page[] = [];
  for (let n = 0; n < 2; n++) {
    const page = await (await browser.newContext()).newPage();
    const own: string[] = [];
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => { if (message.type() === "error") complaints.push(message.text()); });
    page.on("request", (request) => own.push(`${request.method()} ${new URL(request.url()).pathname.slice(8)}`));
    page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => own.push(JSON.parse(`${payload}`).type)));
    await page.goto(`http://127.0.0.1:${(server.address() as { port: number }).port}`);
    await page.locator("#state", { hasText: "online known" }).waitFor();
    await page.locator("#board", { hasText: "empty" }).waitFor();
    await page.locator("#balance", { hasText: "100" }).waitFor();
    asked.push(own);
    pages.push(page);
  }
  const [first, second] = pages;
  const roomId: string = await first.evaluate(async () => {
    const w = window as any;
    const room = await w.parlor.rooms.create({ maxPlayers: 2, entryTokenId: 1, roomEntry: 2.5 });
    w.setWanted(room);
    return room.roomId;
  });
  await first.locator("#balance", { hasText: "97.5" }).waitFor();
  await second.evaluate(() => (window as any).setWanted("none"));
  await second.locator("#error", { hasText: /invalid_request|room_not_found/ }).waitFor();
  await second.evaluate((id) => (window as any).setWanted(id), roomId);
  await second.locator("#players", { hasText: "CREATED" }).waitFor();
  await second.evaluate((id) => (window as any).parlor.rooms.join(id), roomId);
  await second.evaluate(() => (window as any).room.setReady()); // by the copy
  await first.evaluate(() => (window as any).room.setReady());
  for (const page of pages) await page.locator("#players", { hasText: /ready,\d+ ready - CREATED/ }).waitFor();
  await first.evaluate(() => (window as any).room.start());
  await first.evaluate(() => (window as any).room.shared.set({ score: 7 }));
  for (const page of pages) await page.locator("#players", { hasText: "7 STARTED" }).waitFor();

  const { id } = await first.evaluate(() => (window as any).parlor.user);
  await node.call(node.serverKey, "POST", "leaderboards/react/scores", { userId: id, score: 12 });
  for (const page of pages) await page.locator("#board", { hasText: "12" }).waitFor();

  // Unmounted, it hears nothing; mounted again, it has the same client.
  await second.evaluate(() => {
    const w = window as any;
    w.before = w.parlor;
    w.setShown(false);
  });
  await second.locator("#state").waitFor({ state: "detached" });
  await expect.poll(() => asked[1].filter((type) => type === "board.unsubscribe").length).toBe(1);
  await second.evaluate(() => (window as any).setShown(true));
  await second.locator("#board", { hasText: "12" }).waitFor();
  expect(await second.evaluate(() => (window as any).before === (window as any).parlor)).toBe(true);

  const count = (n: number, call: string) => asked[n].filter((one) => one === call).length;
  expect(["POST auth/guest", "POST auth/ticket", "board.subscribe", "GET user-balance/token-balances"]
    .map((call) => [count(0, call), count(1, call)])).toEqual([[1, 1], [1, 1], [1, 2], [1, 2]]);
  expect(count(1, "POST game-session/join")).toBe(1);
  expect(complaints.filter((text) => !/status of 40[04]/.test(text))).toEqual([]);
});
