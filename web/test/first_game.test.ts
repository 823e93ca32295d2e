// The pages that the first steps print, each on an origin of its own.
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startBrowser, startNode, type Node } from "./node";

/** Returns the page that a document prints. */
const readPage = (name: string) =>
  readFileSync(join(import.meta.dirname, `../src/docs/content/${name}.md`), "utf8").match(/```xml\n([\s\S]*?)```/)![1]!;

const pages: Record<string, string> = {
  "/": readPage("first-game"), "/script-tag": readPage("start/script-tag"), "/canvas": readPage("start/canvas"),
};

let node: Node;
let browser: Browser;
let server: Server;

beforeAll(async () => {
  [node, browser] = await Promise.all([startNode(), startBrowser()]);
  server = createServer((request, response) => {
    const page = pages[request.url!];
    if (!page) response.writeHead(404).end();
    else response.writeHead(200, { "Content-Type": "text/html" }).end(page.replace("http://localhost:8080", node.url));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
}, 300_000);

afterAll(async () => {
  await browser?.close();
  server?.close();
  await node?.stop();
});

/** Opens a page for a player, and notes what goes wrong. */
async function open(context: BrowserContext, path: string, complaints: string[]): Promise<Page> {
  const page = await context.newPage();
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => { if (message.type() === "error" && !message.location().url.endsWith("favicon.ico")) complaints.push(message.text()); });
  await page.goto(`http://localhost:${(server.address() as AddressInfo).port}${path}`);
  return page;
}

test("two players find each other, and each sees the clicks of the other", async () => {
  const complaints: string[] = [];
  const first = await open(await browser.newContext(), "/", complaints);
  await first.waitForFunction(() => /: 0/.test(document.querySelector("#log")!.textContent!));
  const second = await open(await browser.newContext(), "/", complaints);
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

test("two players wave on the page of the script tag", async () => {
  const complaints: string[] = [];
  const first = await open(await browser.newContext(), "/script-tag", complaints);
  await first.getByText("1 of 2 players").waitFor();
  const second = await open(await browser.newContext(), "/script-tag", complaints);
  for (const page of [first, second]) await page.getByText("2 of 2 players").waitFor();
  await second.getByText("Wave").click();
  await first.getByText(/waves$/).waitFor();
  expect(complaints).toEqual([]);
}, 60_000);

test("two players see the dots of each other on the page of the canvas", async () => {
  const complaints: string[] = [];
  const isDrawn = (page: Page, x: number, y: number) => page.evaluate(([x, y]) =>
    document.querySelector("canvas")!.getContext("2d")!.getImageData(x!, y!, 1, 1).data[3]! > 0, [x, y]);
  const first = await open(await browser.newContext(), "/canvas", complaints);
  await expect.poll(() => isDrawn(first, 200, 150)).toBe(true);
  const second = await open(await browser.newContext(), "/canvas", complaints);
  await expect.poll(() => isDrawn(second, 200, 150)).toBe(true);
  expect(await isDrawn(second, 60, 40)).toBe(false);
  await expect.poll(async () => {
    await first.mouse.move(0, 0); // a position is sent once, and the room may not have heard of the second player
    await first.locator("canvas").hover({ position: { x: 60, y: 40 } });
    return isDrawn(second, 60, 40);
  }).toBe(true);
  expect(complaints).toEqual([]);
}, 60_000);
