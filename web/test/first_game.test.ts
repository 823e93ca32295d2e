// The page of "Your first game", as it is printed, on an origin of its own.
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Browser, BrowserContext } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startBrowser, startNode, type Node } from "./node";

const text = readFileSync(join(import.meta.dirname, "../src/docs/content/first-game.md"), "utf8");
const printed = text.match(/```xml\n([\s\S]*?)```/)![1]!;

let node: Node;
let browser: Browser;
let server: Server;

beforeAll(async () => {
  [node, browser] = await Promise.all([startNode(), startBrowser()]);
  const page = printed.replace("http://localhost:8080", node.url);
  server = createServer((request, response) => {
    if (request.url !== "/") response.writeHead(404).end();
    else response.writeHead(200, { "Content-Type": "text/html" }).end(page);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
}, 300_000);

afterAll(async () => {
  await browser?.close();
  server?.close();
  await node?.stop();
});

test("two players find each other, and each sees the clicks of the other", async () => {
  const url = `http://localhost:${(server.address() as AddressInfo).port}`;
  const complaints: string[] = [];
  const open = async (context: BrowserContext) => {
    const page = await context.newPage();
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => { if (message.type() === "error" && !message.location().url.endsWith("favicon.ico")) complaints.push(message.text()); });
    await page.goto(url);
    return page;
  };
  const first = await open(await browser.newContext());
  await first.waitForFunction(() => /: 0/.test(document.querySelector("#log")!.textContent!));
  const second = await open(await browser.newContext());
  for (const page of [first, second]) {
    await page.waitForFunction(() => document.querySelector("#log")!.textContent!.match(/: \d/g)?.length === 2);
  }
  await first.click("#go");
  await first.click("#go");
  await second.waitForFunction(() => /: 2/.test(document.querySelector("#log")!.textContent!));
  await second.click("#go");
  await first.waitForFunction(() => /: 2.*: 1/.test(document.querySelector("#log")!.textContent!));
  expect(complaints).toEqual([]);
}, 60_000);
