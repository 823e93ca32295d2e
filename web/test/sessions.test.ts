// What a game's page relies on: a session that does not end, and origins that are listed.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startBrowser, startNode, type Node } from "./node";

const lifetimeMs = 5000; // the shortest that the service allows

let node: Node;
let browser: Browser;
let server: Server;
let origin: string;

/** Ten lines: sign in, find an opponent, say hello. */
const game = (url: string) => `<!doctype html>
<p id="log"></p>
<script src="${url}/sdk/v1.js" crossorigin="anonymous"></script>
<script type="module">
  const parlor = Parlor.init({ gameId: 1 });
  const room = await parlor.rooms.quick({ maxPlayers: 2 });
  room.on("message", ({ from, payload }) => log.append(from + " says " + payload));
  setInterval(() => room.send("chat", "hello"), 500);
  log.append("I am " + parlor.user.id + "; ");
</script>`;

/** A page that remembers whatever happens to its session. */
const watched = (url: string) => `<!doctype html>
<script src="${url}/sdk/v1.js" crossorigin="anonymous"></script>
<script>
  var users = [], errors = [], tokens = [];
  var parlor = Parlor.init({ gameId: 1 });
  parlor.on("user", (e) => users.push(e.user.id));
  parlor.on("error", (e) => errors.push(e.message));
</script>`;

beforeAll(async () => {
  [node, browser] = await Promise.all([startNode("--access-ttl", `${lifetimeMs / 1000}s`), startBrowser()]);
  server = createServer((request, response) => {
    response.writeHead(200, { "Content-Type": "text/html" }).end(request.url === "/watched" ? watched(node.url) : game(node.url));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}, 300_000);

afterAll(async () => {
  await browser?.close();
  server?.close();
  await node?.stop();
});

async function listOrigins(...origins: string[]) {
  const response = await fetch(`${node.url}/api/v1/admin/games/1`, {
    method: "PATCH", body: JSON.stringify({ origins }),
    headers: { Authorization: `Bearer ${node.printed.match(/ADMIN_KEY=(\S+)/)![1]}`, "Content-Type": "application/json" },
  });
  expect(response.status).toBe(200);
}

test("a player with two tabs is never signed out, and both go on for two lifetimes of a token", async () => {
  const context = await browser.newContext();
  const refused: string[] = [];
  context.on("response", (response) => { if (response.status() === 401) refused.push(response.url()); });
  const tabs: Page[] = [];
  for (let n = 0; n < 2; n++) {
    const page = await context.newPage();
    await page.goto(`${origin}/watched`);
    await page.evaluate(() => (window as any).parlor.ready.then(() => {}));
    tabs.push(page);
  }
  const used = new Set<string>();
  const began = Date.now();
  while (Date.now() - began < 2.4 * lifetimeMs) {
    for (const tab of tabs) {
      used.add(await tab.evaluate(async () => {
        const { parlor } = window as any;
        await parlor.wallet.balances(); // rejects when the session has ended
        return parlor.account.token();
      }));
      await tab.waitForTimeout(400);
    }
  }
  const kept = await Promise.all(tabs.map((tab) => tab.evaluate(() => {
    const { users, errors, parlor } = window as any;
    return { users, errors, state: parlor.state === "closed" ? "closed" : "open" };
  })));
  expect(kept[0]).toEqual(kept[1]);
  expect(kept[0]).toMatchObject({ errors: [], state: "open" });
  expect(kept[0]!.users).toHaveLength(1);
  expect(used.size).toBeGreaterThanOrEqual(3); // tokens were renewed, and not each tab for itself
  expect(used.size).toBeLessThanOrEqual(5);
  expect(refused).toEqual([]);
  await context.close();
}, 60_000);

test("a page of a listed origin plays by script tag alone", async () => {
  await listOrigins(origin);
  const pages: Page[] = [];
  for (let n = 0; n < 2; n++) {
    const page = await (await browser.newContext()).newPage();
    await page.goto(origin);
    await page.waitForFunction(() => document.querySelector("#log")!.textContent!.includes("I am"));
    pages.push(page);
  }
  await pages[1]!.waitForFunction(() => / says hello/.test(document.querySelector("#log")!.textContent!));
  for (const page of pages) await page.context().close();
}, 60_000);

test("a page of another origin finds in its console who must allow it, and how", async () => {
  await listOrigins("https://elsewhere.example");
  const page = await (await browser.newContext()).newPage();
  const told = page.waitForEvent("console", {
    predicate: (message) => message.type() === "error" && message.text().includes(`"origins": ["${origin}"]`), timeout: 20_000,
  });
  await page.goto(origin);
  expect((await told).text()).toContain("PATCH /api/v1/admin/games/1");
  await page.context().close();
}, 60_000);
