// The demo at /play, in the binary that users have and in a real browser.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { findViolations } from "./axe";
import { startBrowser, startNode, type Node } from "./node";

let node: Node;
let browser: Browser;
let context: BrowserContext;
let complaints: string[];

beforeAll(async () => {
  [node, browser] = await Promise.all([startNode(), startBrowser()]);
}, 300_000);

afterEach(() => context?.close());

afterAll(async () => {
  await browser?.close();
  await node?.stop();
});

const key = (name: string) => node.printed.match(new RegExp(`${name}=(\\S+)`))![1]!;

async function get(path: string, bearer: string): Promise<any> {
  return (await fetch(node.url + path, { headers: { Authorization: `Bearer ${bearer}` } })).json();
}

/** Opens the demo in tabs of one browser: each is a player of its own. */
async function openTabs(count: number, options = {}): Promise<Page[]> {
  context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  complaints = [];
  return Promise.all(Array.from({ length: count }, async () => {
    const page = await context.newPage();
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => { if (message.type() === "error") complaints.push(message.text()); });
    await page.goto(`${node.url}/play`);
    return page;
  }));
}

/** How long to wait for an event, in ms: far longer than anything takes on a busy machine. */
const timeout = 30_000;

const act = (page: Page, name: string) => page.click(`[data-act=${name}]`, { timeout });
const lanes = (page: Page) => page.waitForFunction(() => document.querySelectorAll(".track").length === 2, null, { timeout });
const text = async (page: Page, selector: string) => (await page.textContent(selector)) ?? "";

/** Lets both players roll until the race is over. */
async function roll(...pages: Page[]) {
  await Promise.all(pages.map(async (page) => {
    while (!(await page.$(".result"))) await page.click("[data-act=move]:enabled", { timeout: 1000 }).catch(() => {});
  }));
}

/** The player of a tab, as its session says. */
const accessToken = (page: Page) => page.evaluate(() => {
  for (const value of Object.values(sessionStorage)) if (value.startsWith("{")) return JSON.parse(value).accessToken as string;
  throw new Error("no session");
});

test("two tabs see each other within two seconds and finish a paid race, to the last unit", async () => {
  const began = Date.now();
  const [host, guest] = await openTabs(2) as [Page, Page];
  await act(host, "create");
  await guest.waitForSelector("[data-act=join]", { timeout });
  const joined = Date.now();
  await act(guest, "join");
  await Promise.all([lanes(host), lanes(guest)]);
  expect(Date.now() - joined).toBeLessThan(2000);
  await act(host, "start");
  await roll(host, guest);
  expect(Date.now() - began).toBeLessThan(60_000);

  const balances = await Promise.all([host, guest].map(async (page) => {
    const { balances } = await get("/api/v1/user-balance/token-balances", await accessToken(page));
    const { amount, heldAmount } = balances.find((one: any) => one.tokenId === "GOLD");
    return [Number(amount), Number(heldAmount)];
  }));
  const results = await Promise.all([host, guest].map((page) => text(page, ".result")));
  const wins = results.map((result) => (result.startsWith("You won") ? 1 : result.startsWith("You lost") ? -1 : 0));
  expect(wins[0]! + wins[1]!).toBe(0);
  expect(balances).toEqual(wins.map((win) => [10_000 + 250 * win, 0]));
  for (const [i, page] of [host, guest].entries()) {
    expect(await text(page, "#balance")).toBe(`${(balances[i]![0]! / 100).toFixed(2)} Gold`);
  }
  expect((await get("/api/v1/admin/audit", key("ADMIN_KEY"))).balanced).toBe(true);
  expect(complaints).toEqual([]);
}, 90_000);

test("whoever closes the tab is shown as offline to the other", async () => {
  const [host, guest] = await openTabs(2) as [Page, Page];
  await act(host, "create");
  await act(guest, "join");
  await Promise.all([lanes(host), lanes(guest)]);
  await host.waitForFunction(() => !document.querySelector(".away"), null, { timeout });
  await guest.close();
  await host.waitForSelector(".away", { timeout });
  expect(await text(host, ".lane:not(.mine) .who")).toContain("offline");
  expect(complaints).toEqual([]);
}, 60_000);

test("the plug is pulled twenty times: nothing is lost, nothing comes twice, the seat is kept", async () => {
  const [host, guest] = await openTabs(2) as [Page, Page];
  await act(host, "create");
  await act(guest, "join");
  await Promise.all([lanes(host), lanes(guest)]);
  const token = await accessToken(guest);
  const { items: [room] } = await get("/api/v1/game-session/list?mine=true", token);
  const tally = () => host.evaluate(() => ({ ...document.querySelector<HTMLElement>("#tally")!.dataset }) as Record<string, string>);
  const isBack = () => host.waitForFunction(
    () => document.querySelector<HTMLElement>("#tally")!.dataset.out === "false" && document.querySelector("#state")!.textContent === "online",
    null, { timeout },
  );
  let pulls = 0;
  const pull = async (meanwhile?: () => Promise<unknown>) => {
    await act(host, "plug");
    await host.waitForSelector(`#tally[data-pulls="${++pulls}"]`, { timeout }); // it is out for a short time only
    await meanwhile?.();
    await isBack();
  };
  // Before the start: the guest is ready, and not, and each is an event of the room.
  let events = Number((await tally()).events);
  for (let n = 0; n < 12; n++) {
    await pull(async () => {
      const response = await fetch(`${node.url}/api/v1/game-session/ready`, {
        method: "POST", body: JSON.stringify({ roomId: room.roomId, ready: n % 2 === 0 }),
        headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      });
      expect(response.status).toBe(200);
    });
    events++;
  }
  await expect.poll(async () => Number((await tally()).events)).toBe(events);
  // In the race: the guest moves while the host is away. The clock of the referee may end it before.
  await act(host, "start");
  do await pull(() => guest.click("[data-act=move]:enabled, .result", { timeout }));
  while (pulls < 20 && !(await host.$(".result")));
  await roll(host, guest);
  const { shared } = await get(`/api/v1/game-session/get?roomId=${room.roomId}`, token);
  const moves = [...Object.entries<any>(shared.value)].reduce((sum, [name, value]) => sum + (name.startsWith("runner.") ? value.moves : 0), 0);
  while (pulls < 20) await pull();
  await expect.poll(tally).toMatchObject({ pulls: "20", lost: "0", doubled: "0", moves: String(moves) });
  const now = await get(`/api/v1/game-session/get?roomId=${room.roomId}`, token);
  expect(now.status).toBe("FINISHED");
  expect(now.participants).toHaveLength(2); // nobody was unseated
  await expect.poll(async () => Number((await tally()).events) + 1).toBe(now.seq); // the first one was heard by its response
  const { balances } = await get("/api/v1/user-balance/token-balances", await accessToken(host));
  const { amount, heldAmount } = balances.find((one: any) => one.tokenId === "GOLD");
  const result = await text(host, ".result");
  const win = result.startsWith("You won") ? 1 : result.startsWith("You lost") ? -1 : 0;
  expect([Number(amount), Number(heldAmount)]).toEqual([10_000 + 250 * win, 0]);
  await expect.poll(() => text(host, "#balance")).toBe(`${(amount / 100).toFixed(2)} Gold`);
  expect((await get("/api/v1/admin/audit", key("ADMIN_KEY"))).balanced).toBe(true);
}, 240_000);

test("a bot plays along, and a race can be called off", async () => {
  const [page] = await openTabs(1) as [Page];
  await page.waitForSelector("[data-act=create]");
  const before = "100.00 Gold";
  await expect.poll(() => text(page, "#balance")).toBe(before);
  await act(page, "create");
  await act(page, "cancel");
  await page.waitForSelector("[data-act=create]");
  await expect.poll(() => text(page, "#balance")).toBe(before);
  await act(page, "bot");
  await lanes(page);
  await act(page, "start");
  await roll(page);
  expect(complaints).toEqual([]);
}, 90_000);

test("the drawer shows the code behind each button, and copies it", async () => {
  const [page] = await openTabs(1, { permissions: ["clipboard-read", "clipboard-write"] }) as [Page];
  await act(page, "drawer");
  for (const [name, code] of [["create", "this.parlor.rooms.create(race)"], ["cancel", "room.cancel()"], ["plug", "network.cut()"]]) {
    await act(page, name!);
    await page.waitForFunction((wanted) => document.querySelector("#drawer code")?.textContent?.includes(wanted!), code);
    await act(page, "copy");
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(await text(page, "#drawer code"));
  }
  const call = page.locator("#drawer summary", { hasText: "game-session/create" });
  await call.click();
  await page.getByRole("button", { name: "Show the code" }).click();
  await page.waitForFunction(() => document.querySelector("#code")?.textContent === "The code: create");
  expect(complaints).toEqual([]);
}, 60_000);

test("the devtools in the drawer cut the network, and write a test that passes on a new node", async () => {
  const [host, guest] = await openTabs(2, { permissions: ["clipboard-read", "clipboard-write"] }) as [Page, Page];
  await act(host, "create");
  await act(guest, "join");
  await Promise.all([lanes(host), lanes(guest)]);
  await act(host, "drawer");
  const press = (name: string) => host.getByRole("button", { name, exact: true }).click();
  const panel = host.getByRole("region", { name: "Parlor devtools" });
  await press("Cut");
  await panel.getByText(", cut").waitFor();
  await guest.evaluate(async (accessToken) => {
    const headers = { Authorization: `Bearer ${accessToken}`, "Content-Type": "application/json" };
    const { items: [room] } = await (await fetch("/api/v1/game-session/list?mine=true", { headers })).json();
    const body = JSON.stringify({ roomId: room.roomId, ready: true });
    await fetch("/api/v1/game-session/ready", { method: "POST", headers, body });
  }, await accessToken(guest));
  await press("Resume");
  await panel.getByText("online").waitFor({ timeout });
  await host.getByRole("tab", { name: "Events" }).click();
  await panel.locator("summary", { hasText: "room.ready" }).waitFor({ timeout });
  await act(host, "start");
  await panel.locator("summary", { hasText: "room.started" }).waitFor({ timeout });
  expect(await panel.locator("summary", { hasText: "room.ready" }).count()).toBe(1);
  expect(await text(host, "#tally")).toContain("lost: 0 · doubled: 0");

  await press("Copy as test");
  const copied = await host.evaluate(() => navigator.clipboard.readText());
  const session = await host.evaluate(() => JSON.stringify(Object.values(sessionStorage)));
  for (const [secret] of session.matchAll(/[\w.-]{32,}/g)) expect(copied).not.toContain(secret);
  expect(copied).toMatch(/player2, "POST", "game-session\/join".*\n.*player2, "POST", "game-session\/ready"/);
  expect(copied).toContain('"game-session/start", { roomId: room1.roomId }, 200)');
  const fresh = await startNode();
  const folder = mkdtempSync(join(tmpdir(), "parlor-copied-"));
  try {
    writeFileSync(join(folder, "parlor.test.mjs"), copied);
    const run = await promisify(execFile)(process.execPath, ["--test", "--test-reporter=tap", join(folder, "parlor.test.mjs")],
      { env: { ...process.env, PARLOR_URL: fresh.url } });
    expect(run.stdout).toMatch(/^# pass 1$/m);
  } finally {
    rmSync(folder, { recursive: true });
    await fresh.stop();
  }
}, 120_000);

test("the demo is accessible in both themes, narrow and wide, and its first paint is light", async () => {
  context = await browser.newContext({ colorScheme: "light", viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  const sizes: Promise<number>[] = [];
  const asked: string[] = [];
  page.on("requestfinished", (request) => {
    sizes.push(request.sizes().then((all) => all.responseBodySize + all.responseHeadersSize));
    if (!request.url().startsWith("data:")) asked.push(new URL(request.url()).origin);
  });
  await page.goto(`${node.url}/play`);
  await page.waitForSelector("[data-act=create]");
  expect((await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)).toBeLessThan(33_000);
  expect(new Set(asked)).toEqual(new Set([node.url]));
  const look = async () => {
    expect(await findViolations(page)).toEqual([]);
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await findViolations(page, ["color-contrast"])).toEqual([]);
    await page.emulateMedia({ colorScheme: "light" });
  };
  await look();
  await act(page, "drawer");
  await act(page, "bot");
  await lanes(page);
  await look();
  for (const name of ["Events", "State", "Network"]) {
    await page.getByRole("tab", { name }).click();
    expect(await findViolations(page)).toEqual([]);
  }
  await act(page, "start");
  await page.waitForSelector("[data-act=move]");
  await page.setViewportSize({ width: 390, height: 844 });
  await look();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  await roll(page);
  await look();
}, 120_000);
