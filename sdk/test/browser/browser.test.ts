// The built script in a real Chromium (CHROMIUM, else /usr/bin/chromium), against a real node.
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { chromium, type Browser, type BrowserContext, type Frame, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { startNode, type RealNode } from "../node.js";

let node: RealNode;
let pages: Server;
let browser: Browser;
let context: BrowserContext;
let port: number;

const dist = (name: string) => readFileSync(new URL(`../../dist/${name}`, import.meta.url), "utf8");
const integrity = JSON.parse(dist("integrity.json"))["1.0.0.js"];

/** The pages of a game: the game itself, and a portal that shows a frame. */
function page(url: URL): string {
  if (url.pathname === "/portal") {
    const sandbox = url.searchParams.get("sandbox");
    const attribute = sandbox ? `sandbox="${sandbox}"` : "";
    return `<!doctype html><iframe ${attribute} src="${url.searchParams.get("game")}"></iframe>`;
  }
  return `<!doctype html>
    <script src="/sdk/1.0.0.js" integrity="${integrity}" crossorigin="anonymous"></script>
    <script>
      var told = [], states = [];
      var client = Parlor.init({ gameId: "1", baseUrl: "${node.url}" });
      client.on("user", function (e) { told.push(e); });
      client.on("state", function (s) { states.push(s); });
    </script>`;
}

const address = (path: string, host = "127.0.0.1") => `http://${host}:${port}${path}`;

/** Waits until the game in a page or frame is online, and returns who plays. */
const whoPlays = (game: Page | Frame): Promise<{ id: number; persistent: boolean; origin: string }> =>
  game.evaluate(async () => {
    const w = window as any;
    await w.client.ready;
    return { id: w.client.user.id, persistent: w.told[0].persistent, origin: self.origin };
  });

async function frameOf(portal: Page): Promise<Frame> {
  const handle = await portal.waitForSelector("iframe");
  const frame = (await handle.contentFrame())!;
  await frame.waitForFunction(() => "client" in window);
  return frame;
}

beforeAll(async () => {
  node = await startNode({ PARLOR_RATE_LIMITS: "off" });
  pages = createServer((request, response) => {
    const url = new URL(request.url!, address("/"));
    const isScript = url.pathname.startsWith("/sdk/");
    response.setHeader("Content-Type", isScript ? "text/javascript" : "text/html");
    response.setHeader("Access-Control-Allow-Origin", "*");
    if (url.searchParams.has("strict")) {
      const policy = `default-src 'none'; script-src ${node.url} 'unsafe-inline' 'self'; connect-src ${node.url} ws:`;
      response.setHeader("Content-Security-Policy", policy);
    }
    response.end(isScript ? dist(url.pathname.slice(5)) : page(url));
  });
  await new Promise<void>((resolve) => pages.listen(0, resolve));
  port = (pages.address() as { port: number }).port;
  const executablePath = process.env.CHROMIUM || "/usr/bin/chromium";
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
});

afterEach(() => context?.close());

afterAll(async () => {
  await browser?.close();
  pages?.close();
  await node?.stop();
});

async function open(path: string, host?: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(address(path, host));
  return page;
}

describe("Chromium", () => {
  it("top level: plays, and the next page has the same player", async () => {
    context = await browser.newContext();
    const game = await open("/game");
    const first = await whoPlays(game);
    expect(first).toMatchObject({ persistent: true, origin: address("") });
    const status = await game.evaluate(async () => {
      const room = await (window as any).client.rooms.create({ maxPlayers: 2 });
      await room.setReady();
      await room.start();
      return [room.status, room.seats[0].ready];
    });
    expect(status).toEqual(["STARTED", true]);
    await game.reload();
    expect(await whoPlays(game)).toEqual(first);
  });

  it("a cross-site frame", async () => {
    context = await browser.newContext();
    const portal = await open(`/portal?game=${encodeURIComponent(address("/game"))}`, "localhost");
    expect(await whoPlays(await frameOf(portal))).toMatchObject({ origin: address("") });
  });

  it("a sandboxed frame: no storage, and the origin null", async () => {
    context = await browser.newContext();
    const portal = await open(`/portal?sandbox=allow-scripts&game=${encodeURIComponent(address("/game"))}`);
    const frame = await frameOf(portal);
    expect(await whoPlays(frame)).toMatchObject({ persistent: false, origin: "null" });
    expect(await frame.evaluate(() => {
      try {
        return typeof localStorage;
      } catch (e) {
        return (e as Error).name;
      }
    })).toBe("SecurityError");
    const saved = await frame.evaluate(() => (window as any).client.progress.save("main", { level: 1 }));
    expect(saved.version).toBe(1);
  });

  it("offline and online", async () => {
    context = await browser.newContext();
    const game = await open("/game");
    await whoPlays(game);
    await game.evaluate(async () => {
      const w = window as any;
      w.room = await w.client.rooms.create({ maxPlayers: 2 });
      w.heard = [];
      w.room.on("joined", (e: any) => w.heard.push(e.user.id));
    });
    const roomId = await game.evaluate(() => (window as any).room.roomId);
    await context.setOffline(true);
    await game.waitForFunction(() => (window as any).client.state === "offline");
    expect(await game.evaluate(() => (window as any).client.store.buy(1).catch((e: any) => e.code))).toBe("offline");
    await node.call(node.tokens.bob, "POST", "game-session/join", { roomId });
    await context.setOffline(false);
    await game.waitForFunction(() => (window as any).heard.length === 1);
    // Who is connected, in the order of the participants: the player, again, and bob, who has no socket.
    await game.waitForFunction(() => {
      const { presence, participants } = (window as any).room;
      return presence.map((p: any) => `${p.userId} ${p.connected}`).join() ===
        participants.map((user: any, n: number) => `${user.id} ${n === 0}`).join();
    });
    // The socket may end a moment before the browser says that it is offline, and an attempt to connect
    // fail a moment after it no longer says so: then the truth is "reconnecting".
    const states: string[] = await game.evaluate(() => (window as any).states);
    expect(states.join()).toMatch(/^connecting,online,(reconnecting,)?offline(,reconnecting|,offline)*,online$/);
  });

  it("shows the devtools, also where no inline style is allowed", async () => {
    context = await browser.newContext({ viewport: { width: 390, height: 700 } });
    const game = await open("/game?strict&parlorDebug");
    await whoPlays(game);
    const panel = game.locator("parlor-debug");
    expect(await panel.evaluate((host) => getComputedStyle(host).position)).toBe("fixed");
    await panel.getByRole("button", { name: "Parlor: online" }).press("Enter");
    await panel.getByRole("tab", { name: "Calls" }).press("ArrowLeft");
    // Before the cuts: after many attempts the next one would be late.
    await panel.getByRole("button", { name: "Disconnect" }).click();
    await game.waitForFunction(() => (window as any).states.join() === "connecting,online,reconnecting,online");
    await panel.getByRole("tab", { name: "Network" }).press("ArrowLeft");
    await panel.getByText("Round trip").waitFor();
    const code = await game.evaluate(async () => {
      const w = window as any;
      w.room = await w.client.rooms.create({ maxPlayers: 2 });
      w.heard = 0;
      w.room.on("joined", () => w.heard++);
      return w.room.code;
    });
    await panel.getByRole("row", { name: new RegExp(`^${code} CREATED \\d`) }).waitFor();
    expect(await game.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);

    await panel.getByRole("button", { name: "Cut" }).click();
    await game.waitForFunction(() => (window as any).client.state === "reconnecting");
    const roomId = await game.evaluate(() => (window as any).room.roomId);
    await node.call(node.tokens.bob, "POST", "game-session/join", { roomId });
    await panel.getByRole("button", { name: "Resume" }).click();
    await game.waitForFunction(() => (window as any).heard === 1);
    await panel.getByRole("tab", { name: "Events" }).click();
    await panel.getByLabel("Filter the events").fill("room.joined");
    await vi.waitFor(async () => expect(await panel.locator("summary:visible").count()).toBe(1), 10_000);

    await panel.getByRole("tab", { name: "Network" }).click();
    await panel.getByRole("button", { name: "Go offline" }).click();
    await game.waitForFunction(() => (window as any).client.state === "offline" && !navigator.onLine);
    await panel.getByRole("tabpanel").getByRole("button", { name: "Resume" }).click();
    await game.waitForFunction(() => (window as any).client.state === "online" && navigator.onLine);
    // Without a clipboard, as on an insecure address, the text is shown.
    await game.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
    await panel.getByRole("button", { name: "Copy as test" }).click();
    expect(await panel.getByLabel("Copy this text").inputValue()).toContain("game-session/create");
    const secrets = await game.evaluate(() => Object.values(localStorage).join().match(/[\w.-]{32,}/g) as string[]);
    expect(secrets.length).toBeGreaterThan(1);
    const recorded = await game.evaluate(() => {
      const { calls, events, writeTest } = (window as any).client.debug;
      return JSON.stringify([calls, events, writeTest()]);
    });
    for (const secret of secrets) expect(recorded).not.toContain(secret);
  });

  it("two tabs of one player", async () => {
    context = await browser.newContext();
    const tabs = await Promise.all([open("/game"), open("/game")]);
    const [one, two] = await Promise.all(tabs.map(whoPlays));
    expect(one.id).toBe(two.id);
    const roomId = await tabs[0].evaluate(async () => {
      const w = window as any;
      w.room = await w.client.rooms.create({ maxPlayers: 2 });
      return w.room.roomId;
    });
    await tabs[1].evaluate(async (id) => {
      const room = await (window as any).client.rooms.get(id);
      await room.setReady();
    }, roomId);
    await tabs[0].waitForFunction(() => (window as any).room.seats[0].ready);
    // The session ends, twice. A tab may read what the other stored a moment late, and then refreshes
    // the same token again; the service gives both the same successor.
    const stored = (tab: Page): Promise<string> => tab.evaluate(() => {
      const [key] = Object.keys(localStorage).filter((name) => name.endsWith(":1"));
      return localStorage[key];
    });
    const signIns: { path: string; token: string; status: Promise<number> }[] = [];
    context.on("request", (request) => {
      if (request.method() !== "POST" || !/auth\/(guest|refresh)/.test(request.url())) return;
      const status = request.response().then((response) => response!.status());
      signIns.push({ path: new URL(request.url()).pathname, token: request.postDataJSON().refreshToken, status });
    });
    for (let round = 0; round < 2; round++) {
      const ended = await tabs[0].evaluate(() => {
        const [key] = Object.keys(localStorage).filter((name) => name.endsWith(":1"));
        const session = JSON.parse(localStorage[key]);
        localStorage[key] = JSON.stringify({ ...session, accessToken: `a.${btoa('{"iat":1,"exp":2}')}.b` });
        return localStorage[key];
      });
      await vi.waitFor(async () => expect(await stored(tabs[1])).toBe(ended), 10_000);
      await Promise.all(tabs.map((tab) => tab.reload()));
      const again = await Promise.all(tabs.map(whoPlays));
      expect(again.map((player) => player.id)).toEqual([one.id, one.id]);
      await vi.waitFor(async () => expect(await stored(tabs[0])).toBe(await stored(tabs[1])), 10_000);
      const made = signIns.splice(0);
      expect(new Set(made.map(({ path }) => path))).toEqual(new Set(["/api/v1/auth/refresh"]));
      expect(new Set(made.map(({ token }) => token))).toEqual(new Set([JSON.parse(ended).refreshToken]));
      expect(new Set(await Promise.all(made.map(({ status }) => status)))).toEqual(new Set([200]));
      expect(made.length).toBeLessThanOrEqual(2);
    }
  });
});
