// What a page of /docs does for its reader: the search, the address of the node, examples that are played.
import type { Browser, Frame, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findViolations } from "./axe";
import { startBrowser, startNode, type Node } from "./node";

let node: Node;
let browser: Browser;

beforeAll(async () => {
  [node, browser] = await Promise.all([startNode(), startBrowser()]);
}, 300_000);

afterAll(async () => {
  await browser?.close();
  await node?.stop();
});

/** Opens a page, and returns what went wrong on it. */
async function open(path: string): Promise<[Page, string[]]> {
  const page = await (await browser.newContext()).newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => { if (message.type() === "error") complaints.push(message.text()); });
  await page.goto(node.url + path);
  return [page, complaints];
}

test("the search is used by keyboard, and loaded when it is focused", async () => {
  const [page, complaints] = await open("/docs");
  const loaded: string[] = [];
  page.on("request", (request) => loaded.push(new URL(request.url()).pathname));
  expect(loaded.filter((path) => path.includes("search-"))).toEqual([]);
  await page.keyboard.press("/");
  await page.keyboard.type("how do I reconnect?");
  await page.locator("#hits li").first().waitFor();
  const field = page.getByRole("combobox");
  expect(await field.getAttribute("aria-expanded")).toBe("true");
  expect(await field.getAttribute("aria-activedescendant")).toBe("hit-0");
  expect(await findViolations(page)).toEqual([]);
  await page.keyboard.press("ArrowDown");
  expect(await page.getByRole("option", { selected: true }).getAttribute("id")).toBe("hit-1");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Escape");
  expect(await field.getAttribute("aria-expanded")).toBe("false");
  await page.keyboard.type(" ");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/docs/sdk/client#lost-connections");
  expect(loaded.some((path) => path.includes("search-"))).toBe(true);
  expect(complaints).toEqual([]);
  await page.context().close();
}, 60_000);

test("every snippet has the address of the node that serves it, and copies it", async () => {
  const [page] = await open("/docs/start/script-tag");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const block = page.locator(".block", { hasText: "v1.js" });
  expect(await page.locator("main").innerText()).not.toContain("localhost:8080");
  expect(await block.innerText()).toContain(`${node.url}/sdk/v1.js`);
  await block.locator("button").click();
  await block.getByText("Copied").waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toContain(`${node.url}/sdk/v1.js`);
  await page.context().close();
}, 60_000);

/** Each example, and what one of its frames shows once both play. */
const played: Record<string, (frame: Frame, other: Frame) => Promise<unknown>> = {
  canvas: (frame) => frame.getByText("Ready").waitFor(),
  arena: (frame) => frame.getByText(/online, [2-8] players/).waitFor(),
  turn_based: (frame) => frame.getByText(/^(Your|Their) move: \d+ s/).waitFor(),
  duel: async (frame, other) => {
    await frame.getByText("Play for 2.50").click();
    await frame.getByText(/Waiting for an opponent|The pot is 5.00/).waitFor();
    await other.getByText("Play for 2.50").click();
    await frame.getByText("The pot is 5.00").waitFor();
  },
  phaser: (frame) => frame.locator("canvas").waitFor(),
};

test("both players of every example play in its page", async () => {
  for (const [name, isPlayed] of Object.entries(played)) {
    const [page, complaints] = await open(`/docs/examples/${name}`);
    await page.getByRole("button", { name: "Play with two players" }).click();
    await page.getByRole("button", { name: "Start again" }).waitFor();
    const frames = await Promise.all((await page.locator("iframe").all()).map(async (one) =>
      (await (await one.elementHandle())!.contentFrame())!));
    expect(frames).toHaveLength(2);
    await isPlayed(frames[0]!, frames[1]!);
    if (name !== "duel") await isPlayed(frames[1]!, frames[0]!);
    expect(complaints, name).toEqual([]);
    await page.context().close();
  }
}, 120_000);
