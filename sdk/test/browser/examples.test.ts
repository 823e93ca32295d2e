// Each example in two windows of a real Chromium, against a real node: each sees what the other does.
import { createServer, type Server } from "node:http";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startNode, type RealNode } from "../node.js";

const folder = fileURLToPath(new URL("../../examples/", import.meta.url));
const names = ["turn_based", "arena", "duel", "canvas", "phaser"];

let node: RealNode;
let server: Server;
let browser: Browser;
let origin: string;
let complaints: string[];

beforeAll(async () => {
  const { outputFiles } = await build({
    absWorkingDir: folder, entryPoints: names.map((name) => `${name}.ts`), outdir: folder, bundle: true, write: false,
    format: "esm", target: "es2022", logLevel: "error",
  });
  const scripts = new Map(outputFiles.map(({ path, text }) => [`/${path.split("/").pop()}`, text]));
  expect([...scripts.keys()].sort()).toEqual(names.map((name) => `/${name}.js`).sort());
  node = await startNode({ PARLOR_RATE_LIMITS: "off" });
  server = createServer((request, response) => {
    const { pathname } = new URL(request.url!, "http://localhost");
    response.setHeader("Content-Type", scripts.has(pathname) ? "text/javascript" : "text/html");
    response.end(scripts.get(pathname)
      ?? `<!doctype html><link rel="icon" href="data:,"><body><script type="module" src="${pathname}.js"></script>`);
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

/** Opens an example for two players, the first before the second. */
async function openBoth(name: string, isReady: (page: Page) => Promise<unknown>): Promise<[Page, Page]> {
  complaints = [];
  const pages: Page[] = [];
  for (let n = 0; n < 2; n++) {
    const page = await (await browser.newContext()).newPage();
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => { if (message.type() === "error") complaints.push(message.text()); });
    // What is written on a canvas, since it was cleared.
    await page.addInitScript(() => {
      const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
      const w = window as any;
      w.written = [];
      CanvasRenderingContext2D.prototype.clearRect = function (...box) {
        w.written = [];
        clearRect.apply(this, box);
      };
      CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        w.written.push(text);
        fillText.call(this, text, x, y);
      };
    });
    await page.goto(`${origin}/${name}?api=${encodeURIComponent(node.url)}`);
    await isReady(page);
    pages.push(page);
  }
  return pages as [Page, Page];
}

const seesText = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor();

describe("two players see each other in", () => {
  it("the turn-based game", async () => {
    await node.call(node.adminKey, "PATCH", "admin/games/1", { settings: { stateKeys: { "cells.": "owner" } } });
    const [first, second] = await openBoth("turn_based", (page) => page.locator("button").nth(8).waitFor());
    const cell = (page: Page, n: number) => page.locator("button").nth(n);
    const move = async (page: Page, other: Page, n: number, mark: string) => {
      await seesText(page, /^Your move: \d+ s/);
      await seesText(other, /^Their move: \d+ s/);
      expect(await cell(other, n).isDisabled()).toBe(true);
      await cell(page, n).click();
      for (const one of [page, other]) await cell(one, n).getByText(mark).waitFor();
    };
    await move(first, second, 0, "X");
    await move(second, first, 4, "O");
    await seesText(first, /^Your move/);
    await first.reload(); // the game goes on: the room has the board and the turn
    await cell(first, 4).getByText("O").waitFor();
    await move(first, second, 1, "X");
    await move(second, first, 8, "O");
    await move(first, second, 2, "X");
    await seesText(first, "You won");
    await seesText(second, "You lost");
    // Both have reported the same: the room has ended without a server of the game.
    await expect.poll(async () => {
      const { items } = await node.call(node.adminKey, "GET", "admin/rooms?gameId=1&status=FINISHED");
      return items.length;
    }).toBe(1);
    expect(complaints).toEqual([]);
  });

  it("the arena", async () => {
    const [first, second] = await openBoth("arena", (page) => page.locator("canvas").waitFor());
    for (const page of [first, second]) await seesText(page, "online, 2 players");
    const isDrawn = (page: Page, x: number, y: number) => page.evaluate(([x, y]) =>
      document.querySelector("canvas")!.getContext("2d")!.getImageData(x, y, 1, 1).data[3] > 0, [x, y]);
    expect(await isDrawn(second, 40, 30)).toBe(false);
    await first.locator("canvas").hover({ position: { x: 40, y: 30 } });
    await expect.poll(() => isDrawn(second, 40, 30), { timeout: 10_000 }).toBe(true);
    await second.locator("canvas").hover({ position: { x: 250, y: 100 } });
    await expect.poll(() => isDrawn(first, 250, 100), { timeout: 10_000 }).toBe(true);
    expect(complaints).toEqual([]);
  });

  it("the paid duel", async () => {
    const [first, second] = await openBoth("duel", (page) => seesText(page, "You have 100.00"));
    await first.getByText("Play for 2.50").click();
    await seesText(first, "Waiting for an opponent");
    await second.getByText("Play for 2.50").click();
    for (const page of [first, second]) {
      await seesText(page, "The pot is 5.00");
      await seesText(page, "You have 97.50");
    }
    const { items } = await node.call(node.adminKey, "GET", "admin/rooms?gameId=1&limit=100");
    const { roomId } = items.find((room: any) => room.status === "STARTED" && room.totalWager === 5);
    const [winner, loser] = (await node.call(node.adminKey, "GET", `game-session/get?roomId=${roomId}`)).participants;
    await node.call(node.serverKey, "POST", "game-session/finish", {
      roomId, results: [{ userId: winner.id, place: 1 }, { userId: loser.id, place: 2 }],
    });
    await seesText(first, "You won 5.00");
    await seesText(first, "You have 102.50");
    await seesText(second, "You lost");
    expect((await node.call(node.adminKey, "GET", "admin/audit")).balanced).toBe(true);
    expect(complaints).toEqual([]);
  });

  it("the room on a canvas", async () => {
    const [first, second] = await openBoth("canvas", (page) => page.getByText("Leave").waitFor());
    const reads = (page: Page, wanted: string) => page.waitForFunction(
      (text) => (window as any).written.some((one: string) => one.includes(text)), wanted);
    await reads(second, "○ Ann (host)");
    await first.getByText("Ready").click();
    await reads(second, "● Ann (host)");
    await second.getByText("Ready").click();
    await first.waitForFunction(() => (window as any).written.filter((one: string) => one.startsWith("●")).length === 2);
    await first.getByText("Start").click();
    await reads(second, "STARTED (online)");
    expect(complaints).toEqual([]);
  });

  it("the Phaser scene", async () => {
    const [first, second] = await openBoth("phaser", (page) => page.locator("canvas").waitFor());
    /** Counts the bright points far right of where everybody begins. */
    const countMoved = async (page: Page) => {
      const shot = (await page.locator("canvas").screenshot()).toString("base64");
      return page.evaluate(async (png) => {
        const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
        const context = new OffscreenCanvas(image.width, image.height).getContext("2d")!;
        context.drawImage(image, 0, 0);
        const { data } = context.getImageData(240, 0, image.width - 240, image.height);
        let bright = 0;
        for (let n = 0; n < data.length; n += 4) if (data[n] + data[n + 1] + data[n + 2] > 60) bright++;
        return bright;
      }, shot);
    };
    expect(await countMoved(second)).toBe(0);
    await first.locator("canvas").click();
    await first.keyboard.down("ArrowRight");
    await first.waitForTimeout(400);
    await first.keyboard.up("ArrowRight");
    await expect.poll(() => countMoved(second), { timeout: 10_000 }).toBeGreaterThan(20);
    expect(complaints).toEqual([]);
  });
});
