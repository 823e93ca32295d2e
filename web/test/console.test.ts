// The console in Chromium, against a node in development.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findViolations } from "./axe";
import { startBrowser } from "./node";

const web = join(dirname(fileURLToPath(import.meta.url)), "..");
const shots = process.env.CONSOLE_SCREENSHOTS; // a folder: every screen is stored there

interface Node { process: ChildProcess; url: string; adminKey: string; serverKey: string; tokens: Record<string, string>; consoleLink: string }

/** Starts `parlor dev` and reads what it prints. */
async function startNode(binary: string): Promise<Node> {
  const process_ = spawn(binary, ["dev"], {
    env: { ...process.env, PARLOR_LISTEN: "127.0.0.1:0", PARLOR_INTERNAL_LISTEN: "127.0.0.1:0", PARLOR_LOG_LEVEL: "warn" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const node: Node = { process: process_, url: "", adminKey: "", serverKey: "", tokens: {}, consoleLink: "" };
  for await (const line of createInterface({ input: process_.stdout! })) {
    node.consoleLink ||= /http:\S+\/console#link=\S+/.exec(line)?.[0] ?? "";
    node.url ||= /\bURL=(\S+)/.exec(line)?.[1] ?? "";
    node.adminKey ||= /\bADMIN_KEY=(\S+)/.exec(line)?.[1] ?? "";
    node.serverKey ||= /\bSERVER_KEY=(\S+)/.exec(line)?.[1] ?? "";
    const token = /\b(\w+)_TOKEN=(\S+)/.exec(line);
    if (token) node.tokens[token[1]!.toLowerCase()] = token[2]!;
    if (node.url && node.adminKey && node.consoleLink && Object.keys(node.tokens).length === 3) break;
  }
  return node;
}

let folder: string;
let node: Node;
let browser: Browser;
let context: BrowserContext;
let page: Page;
const faults: string[] = []; // what a browser complains about, and requests that leave the host

function watch(opened: Page): Page {
  opened.on("request", (r) => { if (new URL(r.url()).origin !== node.url && !r.url().startsWith("data:")) faults.push(`request to ${r.url()}`); });
  opened.on("pageerror", (error) => faults.push(String(error)));
  opened.on("console", (m) => { if (m.type() === "error" && !/status of 4\d\d/.test(m.text())) faults.push(m.text()); });
  return opened;
}

/** Calls the API as a player, or as the operator. */
async function api(method: string, path: string, bearer: string, body?: unknown): Promise<any> {
  const response = await fetch(node.url + path, {
    method, body: body === undefined ? undefined : JSON.stringify(body),
    headers: { Authorization: `Bearer ${bearer}`, "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() },
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}

const createRoom = () => api("POST", "/api/v1/game-session/create", node.tokens.ada!, { entryTokenId: 1, roomEntry: 2.5, maxPlayers: 2 });

async function goTo(hash: string, heading: string | RegExp): Promise<void> {
  await page.goto(`${node.url}/console#/${hash}`);
  await page.getByRole("heading", { level: 1, name: heading }).waitFor();
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "parlor-console-"));
  const binary = process.env.PARLOR_BIN ?? join(folder, "parlor");
  if (!process.env.PARLOR_BIN) execFileSync("go", ["build", "-o", binary, "./cmd/parlor"], { cwd: join(web, "..") });
  node = await startNode(binary);
  browser = await startBrowser();
  context = await browser.newContext({ viewport: { width: 1280, height: 900 }, timezoneId: "UTC", locale: "en-US" });
  page = watch(await context.newPage());
  page.setDefaultTimeout(15_000); // less than that of a test, so that a failure names its line
}, 300_000);

afterAll(async () => {
  await browser?.close();
  node?.process.kill("SIGTERM");
  if (folder) rmSync(folder, { recursive: true, force: true });
});

test("the whole console is under 80 KB gzipped, and under 60 KB to the first paint", () => {
  const dist = join(web, "dist/console");
  const sizeOf = (names: string[]) => names.reduce((sum, name) => sum + statSync(join(dist, name)).size, 0);
  const files = (readdirSync(dist, { recursive: true }) as string[]).filter((name) => name.endsWith(".gz"));
  expect(sizeOf(files)).toBeLessThan(80_000);
  const html = gunzipSync(readFileSync(join(dist, "index.html.gz"))).toString();
  const scripts = [...html.matchAll(/\/console\/(assets\/[^"]+)/g)].map(([, name]) => name!);
  // A script that another imports at its start is read before the paint too.
  const imported = scripts.filter((name) => name.endsWith(".js")).flatMap((name) =>
    [...gunzipSync(readFileSync(join(dist, `${name}.gz`))).toString().matchAll(/(?:from|import)"\/console\/(assets\/[\w.-]+\.js)"/g)].map(([, other]) => other!));
  expect(imported.length).toBeGreaterThan(0);
  expect(sizeOf(["index.html", ...new Set([...scripts, ...imported])].map((name) => `${name}.gz`))).toBeLessThan(60_000);
});

describe("an operator", () => {
  test("signs in by a link, which is good once and leaves no trace in the address", async () => {
    await page.goto(`${node.url}/console`);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.goto(node.consoleLink);
    await page.getByRole("heading", { name: "Rooms" }).waitFor();
    expect(page.url()).toBe(`${node.url}/console#/rooms`);
    const cookie = (await context.cookies()).find((c) => c.name === "parlor_console")!;
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict", path: "/console" });
    expect(await page.evaluate(() => document.cookie)).toBe("");

    await page.goto("about:blank");
    await page.goto(node.consoleLink); // clicked again: the session is what counts
    await page.getByRole("heading", { name: "Rooms" }).waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);

    const stranger = await browser.newContext();
    const other = watch(await stranger.newPage());
    await other.goto(node.consoleLink);
    await other.getByRole("alert").getByText("The link is used", { exact: false }).or(other.getByText(/link is used/)).first().waitFor();
    await stranger.close();
  });

  test("sees a room appear, and cancels it by keyboard", async () => {
    await goTo("rooms", "Rooms");
    const room = await createRoom();
    await page.getByRole("row").filter({ has: page.locator(`[title="${room.roomId}"]`) }).getByRole("link").first().click();
    await page.getByRole("heading", { level: 1, name: "CREATED" }).waitFor();
    await page.getByRole("row", { name: /ada opened the room: 2 seats, entry 2\.5 GOLD/ }).waitFor();
    const cancel = page.getByRole("button", { name: "Cancel…" });
    await cancel.focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Cancel the room" });
    await dialog.waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    expect(await cancel.evaluate((button) => button === document.activeElement)).toBe(true);

    await page.keyboard.press("Enter");
    await dialog.getByText("The API call").click();
    await dialog.getByText("game-session/cancel").waitFor();
    await dialog.getByRole("button", { name: "Cancel and return every stake" }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("The room is cancelled.").waitFor();
    await page.getByRole("heading", { level: 1, name: "CANCELLED" }).waitFor();
    await page.getByRole("row", { name: /The room was cancelled: by the operator; every stake is back/ }).waitFor();
    expect((await api("GET", `/api/v1/game-session/get?roomId=${room.roomId}`, node.adminKey)).status).toBe("CANCELLED");
  });

  test("sees the shared state of a room and whose turn it is, as they change", async () => {
    const { ada, bob } = node.tokens as { ada: string; bob: string };
    await api("PATCH", "/api/v1/admin/games/1", node.adminKey, { settings: { stateKeys: { board: "all" } } });
    const [{ roomId }, { id, username }] = await Promise.all([createRoom(), api("GET", "/api/v1/me", bob)]);
    await api("POST", "/join", bob, { roomId });
    await goTo(`rooms/${roomId}`, /CREATED/);
    const turn = page.locator("dl > div", { has: page.locator("dt", { hasText: /^Turn$/ }) }).locator("dd");
    expect(await turn.textContent()).toBe("–");
    expect(await page.getByRole("heading", { level: 2, name: "Shared state" }).count()).toBe(0);

    await api("POST", "/api/v1/game-session/start", ada, { roomId });
    const given = await api("POST", "/api/v1/game-session/turn", ada, { roomId, userId: id, seconds: 600 });
    await turn.locator(`time[datetime="${given.turn.deadline}"]`).waitFor();
    await turn.getByRole("link", { name: username }).waitFor();

    await api("POST", "/api/v1/game-session/state", bob, { roomId, version: 0, patch: { board: ["x", "é"] } });
    const values = page.getByLabel("Shared state as JSON");
    await page.getByText("Version 1, 1 name, 20 B").waitFor();
    expect(await values.isVisible()).toBe(false);
    await page.getByText("Version 1, 1 name, 20 B").click();
    expect(JSON.parse((await values.textContent())!)).toEqual({ board: ["x", "é"] });
    expect(await findViolations(page)).toEqual([]);
    await api("POST", "/api/v1/game-session/state", ada, { roomId, version: 1, patch: { "board.size": 3 } });
    await page.getByText("Version 2, 2 names").waitFor(); // and it stays open
    expect(JSON.parse((await values.textContent())!)).toEqual({ board: ["x", "é"], "board.size": 3 });

    await api("POST", "/api/v1/game-session/turn", ada, { roomId, userId: null });
    await expect.poll(() => turn.textContent()).toBe("–");
    await api("POST", "/api/v1/game-session/cancel", node.adminKey, { roomId });
  });

  test("finds a room by its code, and reads its result", async () => {
    const { ada, bob } = node.tokens as { ada: string; bob: string };
    await api("PATCH", "/api/v1/admin/games/1", node.adminKey, { settings: { stateKeys: { board: "all" }, rakeBps: 500 } });
    const [room, winner, loser] = await Promise.all([createRoom(), api("GET", "/api/v1/me", bob), api("GET", "/api/v1/me", ada)]);
    await api("POST", "/join", bob, { roomId: room.roomId });
    await api("POST", "/api/v1/game-session/start", ada, { roomId: room.roomId });
    const results = [{ userId: winner.id, place: 1, score: 9 }, { userId: loser.id, place: 2, score: 4 }];
    await api("POST", "/api/v1/game-session/finish", node.serverKey, { roomId: room.roomId, results });
    await api("PATCH", "/api/v1/admin/games/1", node.adminKey, { settings: { stateKeys: { board: "all" }, rakeBps: 0 } });
    await goTo("rooms", "Rooms");
    const search = page.getByLabel("Code or id of a room");
    await search.fill("nothing");
    await page.keyboard.press("Enter");
    await page.getByText("No room has the code nothing.").waitFor();
    await search.fill(room.code.toLowerCase());
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: `Room ${room.code} FINISHED` }).waitFor();
    const result = page.getByRole("region", { name: "Result" });
    await result.getByRole("row", { name: /^1 bob #2 9 2\.5 GOLD 4\.75 GOLD$/ }).waitFor();
    await result.getByRole("row", { name: /^2 ada #1 4 2\.5 GOLD 0 GOLD$/ }).waitFor();
    const facts = page.locator("dl");
    await facts.getByText("0.25 GOLD (5 %)").waitFor();
    await facts.getByRole("link", { name: "Arcade #1" }).waitFor();
    expect(await facts.textContent()).toMatch(/Players2Entry.*Created.* UTC/); // each time has its zone
    expect(await page.getByText("active").count()).toBe(0);
    const picture = page.getByRole("img", { name: /^Timeline of the room: 4 events, 2 players, a pot of 5 GOLD\. From .* ada opened the room.*, to .*bob won 4\.75 GOLD/ });
    expect(await picture.locator("circle").count()).toBe(4);
    await picture.getByText("+4.75 GOLD").waitFor();
    const event = page.getByRole("row", { name: /The room finished: bob won 4\.75 GOLD/ });
    await event.getByText("JSON").click();
    await event.getByText(/^room\.finished .*"rakeAmount":"25"/).waitFor();
  });

  test("decides a dispute, and refunds another, by keyboard", async () => {
    const { ada, bob } = node.tokens as { ada: string; bob: string };
    const ids = await Promise.all([ada, bob].map(async (token) => (await api("GET", "/api/v1/me", token)).id as number));
    const dispute = async (reporters = [ada, bob]) => {
      const room = await api("POST", "/api/v1/game-session/create", ada,
        { entryTokenId: 1, roomEntry: 2.5, maxPlayers: 2, settlement: "consensus" });
      await api("POST", "/join", bob, { roomId: room.roomId });
      await api("POST", "/api/v1/game-session/start", ada, { roomId: room.roomId });
      for (const [i, token] of reporters.entries()) {
        const results = ids.map((userId, at) => ({ userId, place: at === i ? 1 : 2, ...(i === 0 ? { score: 7 - at } : {}) }));
        await api("POST", "/api/v1/game-session/finish", token, { roomId: room.roomId, results });
      }
      return room as { roomId: string; code: string };
    };
    const [first, second] = [await dispute(), await dispute()];
    const read = (roomId: string) => api("GET", `/api/v1/game-session/get?roomId=${roomId}`, node.adminKey);
    const fact = (name: string) => page.locator("dl > div", { has: page.locator("dt", { hasText: name }) });
    await goTo("disputes", "Disputes");
    const table = page.getByRole("region", { name: `Places in room ${first.code}, by report` });
    await table.getByRole("row", { name: new RegExp(`#${ids[0]} place 1 \\(score 7\\) place 2`) }).waitFor();
    const section = page.locator("section").filter({ has: table });
    await section.locator(`time[datetime="${(await read(first.roomId)).refundAt}"]`).waitFor();
    await section.getByText(new RegExp(`#${ids[0]}: 0, .* #${ids[1]}: 0\\.`)).waitFor();
    await section.getByText("will be returned at").waitFor();
    await section.getByText("What happened in the room").click();
    await section.getByRole("row", { name: /The reports differ/ }).waitFor();
    await section.getByRole("row", { name: /bob reported the result/ }).waitFor();
    await section.getByRole("button", { name: "Decide…" }).focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Decide the result" });
    await dialog.getByLabel(`Place of`).first().fill("2");
    await dialog.getByLabel(`Place of`).nth(1).fill("winner");
    await page.keyboard.press("Enter");
    await dialog.getByRole("alert").getByText("must be 1 or more").waitFor();
    await dialog.getByLabel(`Place of`).nth(1).fill("1");
    await dialog.getByText("The API call").click();
    await dialog.getByText(`/api/v1/admin/rooms/${first.roomId}/resolve`).waitFor();
    await dialog.getByLabel(`Place of`).nth(1).focus();
    await page.keyboard.press("Enter");
    await page.getByText("The room is finished.").waitFor();
    await table.waitFor({ state: "detached" });
    const finished = await read(first.roomId);
    expect([finished.status, finished.payouts[0].userId]).toEqual(["FINISHED", ids[1]]);

    await goTo(`rooms/${second.roomId}`, /DISPUTED/);
    await page.getByRole("heading", { level: 2, name: "Reports" }).waitFor();
    await page.getByText(new RegExp(`#${ids[0]}: 1, .* #${ids[1]}: 0\\.`)).waitFor(); // the first lost the one before
    await fact("Without a decision").locator(`time[datetime="${(await read(second.roomId)).refundAt}"]`).waitFor();
    await page.getByRole("button", { name: "Refund…" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByRole("button", { name: "Return every stake" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "CANCELLED" }).waitFor();
    expect((await read(second.roomId)).reason).toBe("dispute_refunded");

    await goTo(`players/${ids[0]}`, "ada");
    expect(await fact("Disputes lost").locator("dd").textContent()).toBe("1");
    const { roomId } = await dispute([ada]); // reported by one, while the window runs
    await goTo(`rooms/${roomId}`, /STARTED/);
    await fact("Reports until").locator(`time[datetime="${(await read(roomId)).reportUntil}"]`).waitFor();
    await api("POST", "/api/v1/game-session/cancel", node.adminKey, { roomId });
    await goTo("disputes", "Disputes");
    await page.getByText("No room is disputed.").waitFor();
    await dispute(); // what the next tests see
  });

  test("hides an entry of a leaderboard, shows it again, removes one and ends the season, by keyboard", async () => {
    const read = () => api("GET", "/api/v1/leaderboards/weekly/entries?gameId=1", node.adminKey);
    await goTo("leaderboards", "Leaderboards");
    await page.getByRole("row", { name: /Best of the week/ }).getByRole("link").click();
    await page.getByRole("heading", { level: 1, name: "Best of the week" }).waitFor();
    const row = (name: string) => page.getByRole("region", { name: "Entries", exact: true }).getByRole("row", { name: new RegExp(name) });
    const dialog = page.getByRole("dialog");
    const confirm = async () => {
      await dialog.getByLabel("Reason").fill("a test");
      await page.keyboard.press("Enter");
    };
    await row("ada").getByRole("button", { name: "Hide…" }).focus();
    await page.keyboard.press("Enter");
    await dialog.getByText("The API call").click();
    await dialog.getByText("/entries/1/hide?season=1").waitFor();
    await confirm();
    await page.getByText("The entry is hidden.").waitFor();
    await row("ada").waitFor({ state: "detached" });
    expect((await read()).items.map((e: any) => e.user.username)).toEqual(["cleo", "bob"]);

    await page.getByLabel("Player's number").fill("1");
    await page.keyboard.press("Enter");
    const found = page.getByRole("region", { name: "Entry of the player" }).getByRole("row", { name: /ada.*hidden/ });
    expect(await findViolations(page)).toEqual([]);
    await found.getByRole("button", { name: "Show…" }).click();
    await confirm();
    await page.getByText("The entry is shown again.").waitFor();
    await row("ada").waitFor();

    await row("bob").getByRole("button", { name: "Remove…" }).click();
    await confirm();
    await page.getByText("The entry is removed.").waitFor();
    await row("bob").waitFor({ state: "detached" });

    await page.getByRole("button", { name: "End…" }).first().click();
    await confirm();
    await page.getByText("The season is over.").waitFor();
    await page.getByText("Nobody has an entry.").waitFor();
    const seasons = page.getByRole("region", { name: "Seasons" });
    await seasons.getByRole("row", { name: /^1 / }).getByRole("button", { name: "Entries" }).click();
    await row("ada").waitFor();
    const { items } = await api("GET", "/api/v1/admin/trail?target=board:1.weekly&limit=10", node.adminKey);
    expect(items.map((a: any) => a.actor)).toEqual(["operator:1", "operator:1", "operator:1", "operator:1"]);
  });

  test("approves the prizes of a season and voids those of the next, which the players get or do not", async () => {
    const { adminKey, tokens } = node as { adminKey: string; tokens: Record<string, string> };
    const goldOfAda = async () => (await api("GET", "/api/v1/user-balance/token-balances", tokens.ada!))
      .balances.find((b: any) => b.tokenId === "GOLD").amount as string;
    await api("POST", "/api/v1/admin/games/1/leaderboards", adminKey, {
      board: "prized", name: "Prized", writers: "server", keepSeasons: 10,
      prizes: { tokenId: "GOLD", pool: "7", from: "mint", table: [{ fromPlace: 1, toPlace: 1, prize: "5" }], reviewSeconds: 86_400 },
    });
    const before = BigInt(await goldOfAda());
    await page.reload();
    await goTo("leaderboards/1.prized", "Prized");
    const dialog = page.getByRole("dialog");
    const season = (n: number, status: string) =>
      page.getByRole("region", { name: "Seasons" }).getByRole("row", { name: new RegExp(`^${n} ${status} `) });
    const confirm = async (done: string) => {
      await dialog.getByLabel("Reason").fill("a test");
      await page.keyboard.press("Enter");
      await page.getByText(done).waitFor();
    };
    /** Reads again until a season has a status: it is sealed in the background. */
    const waitFor = (n: number, status: string) => expect.poll(async () => {
      await page.getByRole("button", { name: "Refresh" }).click();
      return season(n, status).count();
    }).toBe(1);
    for (const n of [1, 2]) {
      await api("POST", "/api/v1/leaderboards/prized/scores?gameId=1", adminKey, { userId: 1, score: 10 * n });
      await page.getByRole("button", { name: "Refresh" }).click();
      await season(n, "OPEN").getByRole("button", { name: "End…" }).click();
      await confirm("The season is over.");
      await waitFor(n, "HELD");
    }
    expect(await findViolations(page)).toEqual([]);
    await season(1, "HELD").getByRole("button", { name: "Approve…" }).click();
    await dialog.getByText("The API call").click();
    await dialog.getByText("/seasons/1/approve").waitFor();
    await confirm("The prizes are approved.");
    await waitFor(1, "PAID");
    await season(2, "HELD").getByRole("button", { name: "Void…" }).click();
    await confirm("The prizes are void.");
    await expect.poll(async () => (await api("GET", "/api/v1/leaderboards/prized/seasons?gameId=1", adminKey))
      .items.find((one: any) => one.season === 2).status).not.toBe("HELD");
    expect(BigInt(await goldOfAda()) - before).toBe(500n); // once, of the first season
    const { balanced, tokens: totals } = await api("GET", "/api/v1/admin/audit?gameId=1", adminKey);
    // The pools: 2 of the first went back, all 7 of the second, and season 3 has its own.
    expect([balanced, totals.find((one: any) => one.tokenId === "GOLD").prizesAmount]).toEqual([true, "700"]);
    const { items } = await api("GET", "/api/v1/admin/trail?target=board:1.prized&limit=2", adminKey);
    expect(items.map((a: any) => [a.action, a.after.reason])).toEqual([["voidSeason", "a test"], ["approveSeason", "a test"]]);
  }, 60_000);

  test("opens a tournament, starts it, decides a match and sees who is paid", async () => {
    const { adminKey, tokens } = node as { adminKey: string; tokens: Record<string, string> };
    const names = ["ada", "bob", "cleo"];
    await goTo("tournaments", "Tournaments");
    await page.getByRole("row", { name: /Open cup.*REGISTRATION.*0 of 8/ }).waitFor();
    await page.getByRole("button", { name: "New tournament…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name", { exact: true }).fill("Console cup");
    await dialog.getByLabel("Format").selectOption("single_elimination");
    await dialog.getByLabel("Starts").fill(new Date(Date.now() + 86_400_000).toISOString().slice(0, 16));
    await dialog.getByLabel("Token").selectOption({ label: "GOLD" });
    await dialog.getByLabel("Fee").fill("2.5");
    await dialog.getByLabel("Added prize", { exact: true }).fill("10");
    await dialog.getByLabel("comes from").selectOption("mint");
    await dialog.getByLabel("Parts of the pot").fill("70, 20");
    await page.keyboard.press("Enter");
    await dialog.getByRole("alert").getByText("sum to 100").waitFor();
    await dialog.getByLabel("Parts of the pot").fill("70, 30");
    if (shots) await page.screenshot({ path: join(shots, "tournament-open.png") });
    expect(await findViolations(page)).toEqual([]);
    await page.keyboard.press("Enter");
    await page.getByText("The tournament is open.").waitFor();
    await page.getByRole("row", { name: /Console cup.*REGISTRATION.*0 of 8 2\.5 GOLD 10 GOLD/ }).getByRole("link").click();
    await page.getByRole("heading", { level: 1, name: /Console cup.*REGISTRATION/ }).waitFor();
    await page.getByText("Nobody has joined.").waitFor();
    const id = Number(/\.(\d+)$/.exec(page.url())![1]);
    const read = (part = "") => api("GET", `/api/v1/tournaments/${id}${part}?gameId=1`, adminKey);
    for (const name of names) await api("POST", `/api/v1/tournaments/${id}/join`, tokens[name]!);
    const players = page.getByRole("region", { name: "Players in the order of joining" });
    await players.getByRole("row", { name: /cleo/ }).waitFor(); // by itself
    await players.getByRole("row", { name: /cleo/ }).getByRole("button", { name: "Disqualify…" }).focus();
    await page.keyboard.press("Enter");
    await dialog.getByText("The fee goes back.").waitFor();
    await dialog.getByLabel("Reason").fill("two accounts");
    await dialog.getByRole("button", { name: "Disqualify" }).click();
    await page.getByText("The player is disqualified.").waitFor();
    await players.getByRole("row", { name: /cleo/ }).waitFor({ state: "detached" }); // before the start one is just gone

    await page.getByRole("button", { name: "Start…" }).click();
    await dialog.getByRole("button", { name: "Start it" }).click();
    await page.getByRole("heading", { level: 1, name: /Console cup.*RUNNING/ }).waitFor();
    const matches = page.getByRole("region", { name: "Matches of round 1" });
    await matches.getByRole("row", { name: /^r1m1 .*(ada.* and bob|bob.* and ada).*READY/ }).waitFor();
    expect(await findViolations(page)).toEqual([]);
    if (shots) await page.screenshot({ path: join(shots, "tournament-running.png"), fullPage: true });
    await matches.getByRole("button", { name: "Decide…" }).focus();
    await page.keyboard.press("Enter");
    const bob = (await api("GET", "/api/v1/me", tokens.bob!)).id as number;
    await dialog.getByLabel("Winner").selectOption(String(bob));
    await dialog.getByText("The API call").click();
    await dialog.getByText(`/tournaments/${id}/matches/r1m1/resolve`).waitFor();
    await dialog.getByRole("button", { name: "Decide it" }).click();
    await page.getByText("The match is decided.").waitFor();
    await page.getByRole("heading", { level: 1, name: /Console cup.*FINISHED/ }).waitFor({ timeout: 15_000 });
    const standings = page.getByRole("region", { name: "Standings" });
    await standings.getByRole("row", { name: /^1 bob.* 10\.5 GOLD$/ }).waitFor();
    await standings.getByRole("row", { name: /^2 ada.* 4\.5 GOLD$/ }).waitFor();
    await players.getByRole("row", { name: /^bob.* 1 10\.5 GOLD/ }).waitFor();
    expect(await page.getByRole("button", { name: "Cancel…" }).count()).toBe(0);
    expect((await read("/standings")).items.map((s: any) => [s.user.id, s.amount]).slice(0, 2)).toEqual([[bob, "1050"], [1, "450"]]);
    const { items } = await api("GET", `/api/v1/admin/trail?target=tournament:1.${id}&limit=10`, adminKey);
    expect(items.map((a: any) => a.action)).toEqual(["resolveMatch", "startTournament", "disqualifyEntrant", "createTournament"]);
    expect(items[2].after).toMatchObject({ reason: "two accounts" });
    await goTo("trail", "Trail");
    await page.getByRole("link", { name: `Console cup #${id}` }).first().click();
    await page.getByRole("heading", { level: 1, name: /Console cup/ }).waitFor();
  }, 60_000);

  test("cancels a tournament, and every fee goes back", async () => {
    const open = { name: "Cup of rain", format: "swiss", maxEntrants: 4, entryTokenId: 1, entryFee: "1", startsAt: new Date(Date.now() + 86_400_000) };
    const { tournamentId } = await api("POST", "/api/v1/admin/games/1/tournaments", node.adminKey, open);
    await api("POST", `/api/v1/tournaments/${tournamentId}/join`, node.tokens.cleo!);
    await goTo(`tournaments/1.${tournamentId}`, /Cup of rain.*REGISTRATION/);
    await page.getByRole("button", { name: "Cancel…" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByLabel("Reason").fill("it rains");
    await page.getByRole("dialog").getByRole("button", { name: "Cancel it" }).click();
    await page.getByText("The tournament is cancelled.").waitFor();
    await page.getByRole("heading", { level: 1, name: /Cup of rain.*CANCELLED/ }).waitFor({ timeout: 15_000 });
    await page.getByText("by the operator").waitFor();
    await goTo("tournaments", "Tournaments");
    await page.getByLabel("Status").selectOption("CANCELLED");
    await expect.poll(() => page.getByRole("row").count()).toBe(2); // with the heads
    await page.getByRole("row", { name: /Cup of rain.*CANCELLED/ }).waitFor();
  }, 60_000);

  test("credits a player once, suspends the player and reads it in the trail", async () => {
    const { user } = await api("GET", "/api/v1/admin/users/3", node.adminKey);
    await goTo("players", "Players");
    await page.getByLabel("Player's number").fill(String(user.id));
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: user.username }).waitFor();
    await page.getByRole("button", { name: "Credit…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Amount").fill("nothing");
    await dialog.getByLabel("Reason").fill("an apology");
    await dialog.getByRole("button", { name: "Credit", exact: true }).click();
    await dialog.getByRole("alert").getByText("invalid_amount").waitFor();
    await dialog.getByLabel("Amount").fill("5.25");
    await dialog.getByRole("button", { name: "Credit", exact: true }).click();
    await page.getByText("The player is credited.").waitFor();
    await page.getByRole("row", { name: /\+5\.25 GOLD.*an apology/ }).waitFor();
    const gold = (await api("GET", `/api/v1/admin/users/${user.id}`, node.adminKey)).balances
      .find((b: { tokenId: string }) => b.tokenId === "GOLD");
    expect(gold.amount).toBe("10525");

    await page.getByRole("button", { name: "Debit…" }).click();
    await dialog.getByLabel("Amount").fill("1000");
    await dialog.getByLabel("Reason").fill("taken back");
    await dialog.getByRole("button", { name: "Debit", exact: true }).click();
    await dialog.getByRole("alert").getByText("insufficient_funds").waitFor();
    await dialog.getByLabel("Amount").fill("0.25"); // what was refused does not bind the next try
    await dialog.getByRole("button", { name: "Debit", exact: true }).click();
    await page.getByRole("row", { name: /−0\.25 GOLD.*taken back/ }).waitFor();

    await page.getByRole("button", { name: "Suspend…" }).click();
    await dialog.getByLabel("Reason").fill("a test");
    await dialog.getByRole("button", { name: "Suspend", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "suspended" }).waitFor();
    expect((await api("GET", `/api/v1/admin/users/${user.id}`, node.adminKey)).user.suspended.reason).toBe("a test");

    await goTo("trail", "Trail");
    await page.getByRole("button", { name: "Show more" }).click();
    await page.getByRole("row", { name: /operator:1 openConsoleSession/ }).waitFor();
    await page.getByLabel("About").fill(`user:${user.id}`);
    await page.keyboard.press("Enter");
    await page.getByRole("row", { name: /operator:1 suspendUser.*a test/ }).waitFor();
    await page.getByRole("row", { name: /operator:1 credit.*an apology/ }).waitFor();
    expect(await page.getByRole("row").count()).toBe(4); // with the heads
  });

  test("sees the limits that a player set, those that count later too, and tightens them", async () => {
    const { id } = await api("GET", "/api/v1/me", node.tokens.bob!);
    const set = (limits: object) => api("PUT", "/api/v1/me/limits", node.tokens.bob!, { tokenId: "GOLD", ...limits });
    await set({ maxStake: "12.5", maxOpenRooms: 3, maxLoss24h: 40 });
    await set({ maxStake: 20, maxOpenRooms: null });
    await goTo(`players/${id}`, "bob");
    const table = page.getByRole("region", { name: "Limits of stakes" });
    await table.getByRole("row", { name: /^GOLD 12\.5 \d of 3 \S+ of 40 Highest stake: 20, from .*Open rooms: no limit, from / }).waitFor();
    await page.getByRole("button", { name: "Tighten…" }).click();
    const dialog = page.getByRole("dialog", { name: "Tighten the limits" });
    await dialog.getByLabel("Highest stake of a room").fill("13");
    await dialog.getByLabel("Rooms with a stake at once").fill("two");
    await page.keyboard.press("Enter");
    await dialog.getByRole("alert").getByText("must be 0 or more").waitFor();
    await dialog.getByLabel("Rooms with a stake at once").fill("");
    await page.keyboard.press("Enter");
    await dialog.getByRole("alert").getByText("forbidden").waitFor(); // it would loosen the limit
    await dialog.getByLabel("Highest stake of a room").fill("5");
    await dialog.getByLabel("Rooms with a stake at once").fill("2");
    await page.keyboard.press("Enter");
    await page.getByText("The limits are tighter.").waitFor();
    await table.getByRole("row", { name: /^GOLD 5 \d of 2 \S+ of 40 –$/ }).waitFor();
    await page.getByRole("button", { name: "Exclude…" }).click();
    await page.getByLabel("Until").fill("2126-12-24T18:00");
    await page.keyboard.press("Enter");
    await page.getByText("The player is excluded.").waitFor();
    await page.getByText(/excluded.* from paid rooms until .*2126/).waitFor();
    const limits = await api("GET", "/api/v1/me/limits", node.tokens.bob!);
    expect(limits.excludedUntil).toMatch(/^2126-12-2/);
    expect(limits.items[0]).toMatchObject({ maxStake: 5, maxStakeAmount: "500", maxOpenRooms: 2, maxLoss24h: 40, pending: [] });
  });

  test("sees the money balanced and each entry", async () => {
    await goTo("ledger", "Ledger");
    await page.getByText("Balanced: no unit was made or lost.").waitFor();
    await page.getByRole("row", { name: /an apology.*the operator/ }).waitFor();
    await page.getByRole("row", { name: /prize .*\+10\.5 GOLD bob #2.*Console cup #2/ }).waitFor();
    await page.getByRole("row", { name: /prize .*\+5 GOLD ada #1.*prized, season 1/ }).getByRole("link", { name: /season/ }).click();
    await page.getByRole("heading", { level: 1, name: "Prized" }).waitFor();
    await goTo("ledger", "Ledger");
    await page.getByRole("row", { name: /refund.* \w{7} 01\w+…/ }).first().getByRole("link").last().click(); // a room, by its code
    await page.getByRole("heading", { level: 1, name: /^Room \w{7} CANCELLED$/ }).waitFor();
    await goTo("ledger", "Ledger");
  });

  test("sees why money is stopped, and no balance beside it", async () => {
    const at = "2026-11-20T17:31:02.007Z";
    const loss = { gameId: 1, cause: "loss", reason: "the store lost game 1, 3 acknowledged ledger entries", at };
    const stop = { cause: "older", reason: "money is stopped: the store has an older history than before", at };
    let stopped: object[] = [loss];
    await page.route("**/api/v1/admin/audit*", async (route) => {
      const reply = await route.fetch();
      await route.fulfill({ response: reply, json: { ...await reply.json(), balanced: false, stopped } });
    });
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByText("Lost: the sums of what is left agree").waitFor();
    await page.getByRole("row", { name: /1 loss .*3 acknowledged ledger entries/ }).waitFor();
    stopped = [stop, loss];
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByText("Stopped: the sums agree").waitFor();
    await page.getByRole("row", { name: /all older .*an older history than before/ }).waitFor();
    expect(await page.getByText("Balanced: no unit").count()).toBe(0);
    await page.unroute("**/api/v1/admin/audit*");
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByText("Balanced: no unit was made or lost.").waitFor();
  });

  test("edits a game, an asset and a token", async () => {
    await goTo("games/1", /Arcade/);
    await page.getByRole("button", { name: "Edit…" }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("Arcade two");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { level: 1, name: "Arcade two" }).waitFor();
    await page.getByRole("row", { name: /Lantern/ }).getByRole("button", { name: "Edit…" }).click();
    await dialog.getByLabel("Price").fill("13.50");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByRole("row", { name: /Lantern.*13\.5 GOLD/ }).waitFor();
    await goTo("tokens", "Tokens");
    await page.getByRole("row", { name: /GEM/ }).getByRole("button", { name: "Edit…" }).click();
    await dialog.getByLabel("Name").fill("Ruby");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByRole("row", { name: /Ruby/ }).waitFor();
  });

  test("makes a game and sees its next steps, and makes a leaderboard for it", async () => {
    await goTo("games", "Games");
    await page.getByRole("button", { name: "New game…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("Checkers");
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "New game…" }).click();
    await dialog.getByLabel("Name").fill("Checkers");
    await dialog.getByRole("button", { name: "Register" }).click();
    await page.getByRole("heading", { level: 2, name: /Next steps for Checkers #\d+/ }).waitFor();
    expect(await page.getByText(/psk_\S+/).count()).toBe(1);
    const id = /#(\d+)/.exec((await page.getByRole("heading", { level: 2, name: /Next steps/ }).textContent())!)![1]!;
    const snippet = await page.getByLabel("The page of the game").textContent();
    expect(snippet).toContain(`src="${node.url}/sdk/v1.js"`);
    expect(snippet).toContain(`gameId: ${id} `);
    expect(await findViolations(page)).toEqual([]);

    await goTo("leaderboards", "Leaderboards");
    await page.getByRole("row", { name: /Best of the week/ }).waitFor();
    await page.getByLabel("Game", { exact: true }).selectOption(id);
    await page.getByText("The game has no leaderboard.").waitFor();
    await page.getByRole("button", { name: "New leaderboard…" }).click();
    await dialog.getByLabel("Name").fill("Best of the day");
    await dialog.getByLabel("Key").fill("daily");
    await dialog.getByLabel("A new season begins").selectOption("every day");
    await dialog.getByLabel("Scores come from").selectOption("the server and players");
    expect(await findViolations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Make it" }).click();
    await page.getByRole("row", { name: /Best of the day daily 1 OPEN/ }).getByRole("link").click();
    await page.getByText("0 0 * * *, UTC").waitFor();
    await page.getByRole("link", { name: `Checkers #${id}` }).waitFor();
    const board = await api("GET", `/api/v1/admin/games/${id}/leaderboards/daily`, node.adminKey);
    expect([board.writers, board.order, board.prizes ?? null]).toEqual([["server", "players"], "desc", null]);

    await goTo("leaderboards", "Leaderboards");
    await page.getByRole("row", { name: /Best of the week/ }).waitFor();
    await page.getByRole("button", { name: "New leaderboard…" }).click();
    await dialog.getByLabel("Name").fill("With prizes");
    await dialog.getByLabel("Key").fill("formed");
    await dialog.getByLabel("Prizes in").selectOption("GOLD");
    await dialog.getByLabel("Pool of a season").fill("10");
    await dialog.getByLabel("comes from").last().selectOption("mint");
    await dialog.getByLabel("Parts of the pool").fill("70, 30");
    await dialog.getByRole("button", { name: "Make it" }).click();
    await page.getByRole("row", { name: /With prizes formed/ }).waitFor();
    const { prizes } = await api("GET", "/api/v1/admin/games/1/leaderboards/formed", node.adminKey);
    expect(prizes).toMatchObject({
      tokenId: "GOLD", from: "mint", reviewSeconds: 86_400, table: [{ fromPlace: 1, shareBps: 7000 }, { fromPlace: 2, shareBps: 3000 }],
    });
  });

  test("makes a webhook, sees what it delivers and why it fails, and sends it again", async () => {
    let status = 200;
    const got: { type: string; id: string; signatures: number }[] = [];
    const receiver = createServer((request, response) => {
      let text = "";
      request.on("data", (chunk) => { text += chunk; });
      request.on("end", () => {
        if (status === 200) {
          got.push({
            type: JSON.parse(text).type, id: String(request.headers["webhook-id"]),
            signatures: String(request.headers["webhook-signature"]).split(" ").length,
          });
        }
        response.writeHead(status).end(status === 200 ? "thanks" : "not today");
      });
    });
    await new Promise<void>((listening) => receiver.listen(0, "127.0.0.1", listening));
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
    try {
      await goTo("games/1", /#1/);
      await page.getByRole("button", { name: "Create one…" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Address").fill("http://169.254.169.254/");
      await dialog.getByRole("button", { name: "Create" }).click();
      await dialog.getByText("must be a public address", { exact: false }).waitFor();
      await dialog.getByLabel("Address").fill(url);
      await dialog.getByLabel("Gets").selectOption("rooms,seats");
      await dialog.getByRole("button", { name: "Create" }).click();
      await page.getByText(/^whsec_/).waitFor();
      await page.getByRole("link", { name: url }).click();
      await page.getByRole("heading", { level: 1, name: url }).waitFor();

      await page.getByRole("button", { name: "Send a test…" }).click();
      await dialog.getByRole("button", { name: "Send", exact: true }).click();
      await page.getByRole("row").filter({ hasText: "webhook.test" }).getByText("thanks").waitFor();
      const room = await createRoom();
      await page.getByRole("row").filter({ hasText: "room.created" }).getByText("delivered").waitFor();
      if (shots) await page.screenshot({ path: join(shots, "webhook.png"), fullPage: true });

      status = 503;
      await api("POST", "/api/v1/game-session/ready", node.tokens.ada!, { roomId: room.roomId, ready: true });
      await page.getByText("Last error").waitFor();
      await page.getByRole("definition").filter({ hasText: "failing" }).waitFor();
      await page.getByLabel("Show").selectOption("failed");
      await page.getByRole("row").filter({ hasText: "room.ready" }).getByText("not today").waitFor();
      if (shots) await page.screenshot({ path: join(shots, "webhook-failing.png"), fullPage: true });
      expect(await findViolations(page)).toEqual([]);
      status = 200;
      await expect.poll(() => got.map((m) => m.type), { timeout: 30_000 }).toContain("room.ready");

      await page.getByRole("button", { name: "Rotate the secret…" }).click();
      await dialog.getByRole("button", { name: "Rotate" }).click();
      await page.getByText(/^whsec_/).waitFor();
      await page.getByRole("button", { name: "Send again…" }).click();
      await dialog.getByLabel("Since").fill("2026-01-01T00:00");
      await dialog.getByRole("button", { name: "Send again" }).click();
      // The rooms of the tests before are in the feed as well, and are sent for the first time.
      const first = got.find((m) => m.type === "room.created")!;
      await expect.poll(() => got.filter((m) => m.id === first.id).length, { timeout: 30_000 }).toBe(2);
      expect(got.findLast((m) => m.id === first.id)!.signatures).toBe(2);

      await page.getByRole("button", { name: "Disable…" }).click();
      await dialog.getByRole("button", { name: "Disable" }).click();
      await page.getByRole("definition").filter({ hasText: "disabled" }).waitFor();
      await goTo("games/1", /#1/);
      await page.getByRole("row").filter({ hasText: url }).getByText("disabled").waitFor();
      if (shots) await page.screenshot({ path: join(shots, "webhooks-of-a-game.png"), fullPage: true });
    } finally {
      receiver.close();
    }
  }, 60_000);

  test("sees the pot and the players of a game over the day", async () => {
    await goTo("games/1", /Arcade/);
    const charts = page.locator("section").filter({ has: page.getByRole("heading", { name: "The last day" }) });
    await page.getByText("A sample is taken each five minutes.").waitFor(); // the node found nobody when it started
    const path = "**/api/v1/admin/games/1/activity";
    await page.route(path, async (route) => {
      const response = await route.fetch();
      const sample = (i: number) => ({
        at: new Date(Date.now() - i * 300_000).toISOString(), rooms: i, players: 2 * i, pots: i === 1 ? [{ tokenId: "GOLD", potAmount: "12550" }] : [],
      });
      await route.fulfill({ response, json: { items: [3, 2, 1].map(sample), nextCursor: null } });
    });
    await charts.getByRole("button", { name: "Refresh" }).click();
    await charts.getByRole("img", { name: /^Players of the last day.*; now players 2, rooms 1$/ }).waitFor();
    await charts.getByRole("img", { name: /^At stake of the last day.*; now GOLD 125\.5$/ }).waitFor();
    await charts.locator("canvas").nth(1).waitFor();
    expect(await findViolations(page)).toEqual([]);
    await page.unroute(path);
  });

  test("sees each node and four plots", async () => {
    await goTo("nodes", "Nodes");
    await page.getByRole("row", { name: /serves memory/ }).waitFor();
    await page.locator(".plot canvas").nth(3).waitFor();
    await expect.poll(() => page.getByRole("img", { name: /Requests of the last five minutes.*now all \d/ }).count())
      .toBe(1);
  });

  test("sees that the installation is mixed", async () => {
    await page.route("**/api/v1/admin/nodes", async (route) => {
      const response = await route.fetch();
      const body = await response.json();
      const older = { ...body.items[0], id: "older", version: "v0.9.0", commit: "", oldestLayout: 0, newestLayout: 0, layout: 0 };
      await route.fulfill({ response, json: { ...body, items: [...body.items, older] } });
    });
    await goTo("rooms", "Rooms");
    await goTo("nodes", "Nodes");
    await page.getByRole("status").filter({ hasText: /Mixed installation: .* on 1 node, v0\.9\.0 on 1 node/ }).waitFor();
    await page.unroute("**/api/v1/admin/nodes");
  });

  test("finds the API call behind every screen", async () => {
    for (const [hash, heading, path] of [
      ["rooms", "Rooms", "/api/v1/admin/rooms"], ["disputes", "Disputes", "/api/v1/admin/rooms?status=DISPUTED"], ["players", "Players", "/api/v1/admin/users"], ["games", "Games", "/api/v1/admin/games"],
      ["tokens", "Tokens", "/api/v1/admin/tokens"], ["ledger", "Ledger", "/api/v1/admin/audit"], ["trail", "Trail", "/api/v1/admin/trail"],
      ["nodes", "Nodes", "/api/v1/admin/nodes"], ["tournaments", "Tournaments", "/api/v1/tournaments?gameId=1"],
    ] as const) {
      await goTo(hash, heading);
      if (hash === "rooms") await page.getByText("API calls behind this screen").click(); // it stays open
      await page.locator(".behind pre", { hasText: `curl -s "$URL${path}` }).first().waitFor();
    }
  });

  test.each(["light", "dark"] as const)("finds no serious fault of accessibility in the %s theme", async (theme) => {
    await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
    const room = await createRoom();
    for (const [name, hash, heading] of [
      ["rooms", "rooms", "Rooms"], ["room", `rooms/${room.roomId}`, "CREATED"], ["disputes", "disputes", "Disputes"], ["players", "players", "Players"], ["player", "players/3", "suspended"], ["limits", "players/2", "bob"],
      ["games", "games", "Games"], ["game", "games/1", "Arcade"], ["tokens", "tokens", "Tokens"], ["ledger", "ledger", "Ledger"],
      ["leaderboards", "leaderboards", "Leaderboards"], ["leaderboard", "leaderboards/1.weekly", "Best of the week"],
      ["tournaments", "tournaments", "Tournaments"], ["tournament", "tournaments/1.2", "Console cup"],
      ["trail", "trail", "Trail"], ["nodes", "nodes", "Nodes"], ["dialog", "players/1", "ada"],
    ] as const) {
      await goTo(hash, new RegExp(heading));
      await page.locator("table").first().waitFor();
      if (name === "dialog") await page.getByRole("button", { name: "Credit…" }).click();
      expect(await findViolations(page), `${name}, ${theme}`).toEqual([]);
      for (const width of shots ? [1280, 390] : []) {
        mkdirSync(shots!, { recursive: true });
        await page.setViewportSize({ width, height: 900 });
        await page.screenshot({ path: join(shots!, `${name}-${theme}-${width}.png`), fullPage: name !== "dialog" });
      }
      await page.setViewportSize({ width: 390, height: 900 });
      expect(await findViolations(page), `${name}, ${theme}, narrow`).toEqual([]);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(overflow, `${name} is wider than a narrow screen`).toBeLessThanOrEqual(0);
      const hidden = await page.evaluate(() => [...document.querySelectorAll(".scroll")].filter((e) => e.scrollWidth > e.clientWidth).length);
      expect(hidden, `${name} has a table that is wider than a narrow screen`).toBe(0);
      await page.setViewportSize({ width: 1280, height: 900 });
      if (name === "dialog") await page.keyboard.press("Escape");
    }
  }, 180_000);

  test("sees on a narrow screen which screen is open", async () => {
    await page.setViewportSize({ width: 390, height: 900 });
    for (const [hash, heading] of [["nodes", "Nodes"], ["rooms", "Rooms"]] as const) {
      await goTo(hash, heading);
      await expect.poll(() => page.locator("nav [aria-current]").evaluate((link) => {
        const { left, right } = link.getBoundingClientRect();
        return left >= -1 && right <= innerWidth + 1 ? // browsers scroll by whole pixels
           "in sight" : `from ${left} to ${right} of ${innerWidth}`;
      })).toBe("in sight");
    }
    await page.setViewportSize({ width: 1280, height: 900 });
  });

  test("signs out, and the session is over for whoever has the cookie", async () => {
    const cookies = await context.cookies();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await context.addCookies(cookies);
    await page.reload();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      expect(await findViolations(page), `sign-in, ${colorScheme}`).toEqual([]);
      if (shots) await page.screenshot({ path: join(shots, `sign-in-${colorScheme}.png`) });
    }
  });

  test("saw no complaint of the browser and no request to another host", () => expect(faults).toEqual([]));
});
