import { afterEach, describe, expect, it, vi } from "vitest";
import { jitter } from "../src/random.js";
import { FakeService } from "./fake_service.js";
import { openTab, run, settle, useFakeClock } from "./tab.js";

useFakeClock();
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const tickets = (service: FakeService) => service.calls.filter((call) => call.path === "auth/ticket").length;
const end = (service: FakeService, code: number) => { for (const s of [...service.sockets]) s.end(code); };

/** Stands for the parts of a browser that tell about the network and the page. */
function fakeBrowser() {
  const window = new EventTarget();
  const document = Object.assign(new EventTarget(), { visibilityState: "visible" });
  const navigator = { onLine: true };
  vi.stubGlobal("window", window);
  vi.stubGlobal("document", document);
  vi.stubGlobal("navigator", navigator);
  return { window, document, navigator };
}

describe("connection", () => {
  it("goes through its states", async () => {
    const service = new FakeService();
    const client = openTab(service);
    const states: string[] = [client.state];
    client.on("state", (s) => states.push(s));
    await settle(client.ready);
    end(service, 1006);
    await run(2000);
    client.close();
    expect(states).toEqual(["idle", "connecting", "online", "reconnecting", "online", "closed"]);
  });

  it("waits 250 ms to 15 s, ever longer, without end", async () => {
    const cases = [[0, 0, 250], [0, 1, 500], [3, 1, 4000], [9, 0, 250], [9, 1, 15_000], [2000, 1, 15_000]];
    for (const [n, random, ms] of cases) {
      vi.spyOn(Math, "random").mockReturnValue(random);
      expect(jitter(n)).toBe(ms);
    }
    const service = new FakeService();
    const client = openTab(service);
    await settle(client.ready);
    service.reachable = false;
    end(service, 1006);
    const before = service.calls.length;
    await run(600_000);
    const tried = service.calls.length - before;
    expect(tried).toBeGreaterThan(38);
    expect(tried).toBeLessThan(90);
    service.reachable = true;
    await run(16_000);
    expect(client.state).toBe("online");
  });

  it("counts attempts anew after 5 s of calm only", async () => {
    vi.spyOn(Math, "random").mockReturnValue(1);
    const service = new FakeService();
    const client = openTab(service);
    await settle(client.ready);
    const waits: number[] = [];
    for (const calm of [6000, 1000, 1000, 6000]) {
      await run(calm);
      const from = Date.now();
      const back = new Promise<void>((resolve) => { client.on("state", (s) => s === "online" && resolve()); });
      end(service, 1006);
      await settle(back);
      waits.push(Math.floor((Date.now() - from) / 500) * 500);
    }
    expect(waits).toEqual([500, 1000, 2000, 500]);
  });

  it("follows the hint of a node that stops", async () => {
    const service = new FakeService();
    const client = openTab(service);
    await settle(client.ready);
    await run(1000);
    const hints: any[] = [];
    client.on("draining", (e) => hints.push(e));
    const draining = { type: "server.draining", at: service.time(), data: { reconnectInMs: 3000 } };
    for (const s of service.sockets) s.say(draining);
    await run(100);
    end(service, 1012);
    const before = tickets(service);
    await run(2800);
    expect(tickets(service)).toBe(before);
    await run(300);
    expect(client.state).toBe("online");
    expect(hints).toEqual([{ reconnectInMs: 3000 }]);
  });

  it("says that the node hears nothing from its store, and that it does again", async () => {
    const service = new FakeService();
    const client = openTab(service);
    await settle(client.ready);
    await run(1000);
    const told: number[] = [];
    client.on("stale", (e) => told.push(e.sinceMs));
    for (const sinceMs of [3000, 0]) {
      for (const s of service.sockets) s.say({ type: "server.stale", at: service.time(), data: { sinceMs } });
    }
    await run(100);
    expect(told).toEqual([3000, 0]);
    expect(client.state).toBe("online");
  });

  for (const [what, wake] of [
    ["online", (b: any) => b.window.dispatchEvent(new Event("online"))],
    ["pageshow", (b: any) => b.window.dispatchEvent(new Event("pageshow"))],
    ["visible", (b: any) => b.document.dispatchEvent(new Event("visibilitychange"))],
  ] as const) {
    it(`connects at once on ${what}`, async () => {
      const browser = fakeBrowser();
      const service = new FakeService();
      const client = openTab(service);
      await settle(client.ready);
      service.reachable = false;
      end(service, 1006);
      await run(300_000);
      vi.spyOn(Math, "random").mockReturnValue(1);
      await run(15_000);
      service.reachable = true;
      wake(browser);
      await run(100);
      expect(client.state).toBe("online");
    });
  }

  it("is offline when the browser says so, and listens no more once closed", async () => {
    const browser = fakeBrowser();
    const removed = vi.spyOn(browser.window, "removeEventListener");
    const service = new FakeService();
    const client = openTab(service);
    await settle(client.ready);
    browser.navigator.onLine = false;
    service.reachable = false;
    browser.window.dispatchEvent(new Event("offline"));
    expect(client.state).toBe("offline");
    await expect(settle(client.wallet.balances())).rejects.toMatchObject({ code: "offline", retryable: true });
    await expect(client.store.buy(1)).rejects.toMatchObject({ code: "offline" });
    expect(await settle(client.store.pending())).toEqual([]);
    browser.navigator.onLine = service.reachable = true;
    browser.window.dispatchEvent(new Event("online"));
    await run(100);
    expect(client.state).toBe("online");
    client.close();
    expect(removed.mock.calls.length).toBe(4); // and one of the document
  });

  it("notices a connection that died in silence", async () => {
    const service = new FakeService();
    const client = openTab(service);
    await settle(client.ready);
    for (const s of service.sockets) s.handle = () => {};
    const before = tickets(service);
    await run(40_000);
    expect(tickets(service)).toBe(before + 1);
    expect(client.state).toBe("online");
  });

  it("keeps a silent connection that lives", async () => {
    const service = new FakeService();
    const client = openTab(service);
    await settle(client.ready);
    const before = tickets(service);
    await run(300_000);
    expect(tickets(service)).toBe(before);
  });

  it("ends for good where the service says so", async () => {
    for (const [code, error] of [[4403, "forbidden"], [4426, "protocol_too_old"]] as const) {
      const service = new FakeService();
      const client = openTab(service);
      const errors: any[] = [];
      client.on("error", (e) => errors.push(e));
      await settle(client.ready);
      const before = tickets(service);
      end(service, code);
      await run(60_000);
      expect(client.state).toBe("closed");
      expect(errors).toMatchObject([{ code: error }]);
      expect(tickets(service)).toBe(before);
    }
  });

  it("keeps the objects of the page and tells the player's events once", async () => {
    const service = new FakeService();
    const client = openTab(service);
    await settle(client.ready);
    await settle(client.wallet.balances());
    const heard: any[] = [];
    client.on("balance", (e) => heard.push(e.amount));
    client.on("progress", (e) => heard.push(e.slot));
    const event = { tokenId: "GOLD", volume: 5, amount: "500", held: 0, heldAmount: "0" };
    service.tellUser("user.balance", 1, event);
    service.tellUser("user.balance", 1, event);
    client.on("match", (e) => heard.push(e.matchId));
    service.tellUser("user.progress", 1, { slot: "main" }); // a numbering of its own
    service.tellUser("user.match", 2, { matchId: "r1m1" }); // counted with the saves
    await run(100);
    expect(heard).toEqual(["500", "main", "r1m1"]);
    end(service, 1006);
    await run(3000);
    expect(heard).toEqual(["500", "main", "r1m1", "750"]); // what changed meanwhile
    expect(service.frames.filter((f) => f.type === "user.subscribe").pop().data)
      .toEqual({ after: { money: "1-u", progress: "2-u" } });
  });

  it("reads the balances after a connection only where their events are gone", async () => {
    const service = new FakeService();
    const client = openTab(service);
    await settle(client.ready);
    await settle(client.wallet.balances());
    const reads = () => service.calls.filter((call) => call.path === "user-balance/token-balances").length;
    for (const read of [undefined, ["saves"], ["wallet"], ["wallet", "saves"]]) {
      const position = { money: "0-0", progress: "0-0" };
      service.userStart = { mode: read ? "snapshot" : "resume", position, read };
      const before = reads();
      end(service, 1006);
      await run(16_000);
      expect(reads() - before).toBe(read?.includes("wallet") ? 1 : 0);
    }
  });

  it("hears what follows events of the player that a failover has undone", async () => {
    const service = new FakeService();
    const client = openTab(service);
    await settle(client.ready);
    const heard: any[] = [];
    client.on("balance", (e: any) => heard.push(`${e.reason} ${e.amount}`));
    const tell = (seq: number, reason: string, amount: string) =>
      service.tellUser("user.balance", seq, { tokenId: "GOLD", reason, amount, heldAmount: "0" }, reason);
    tell(8, "won", "900");
    tell(6, "resync", "500"); // what is left of it, with a lower number
    tell(7, "quest", "600");
    await run(100);
    expect(heard).toEqual(["won 900", "resync 500", "quest 600"]);

    service.userStart = { mode: "snapshot", position: { money: "4-v", progress: "1-v" }, read: ["wallet", "saves"] };
    end(service, 1006);
    await run(3000);
    heard.length = 0;
    tell(5, "found", "700"); // it was undone while nobody listened
    await run(100);
    expect(heard).toEqual(["found 700"]);
  });

  it("renews the token of a living socket", async () => {
    const service = new FakeService();
    const client = openTab(service);
    await settle(client.ready);
    await run(service.tokenLifeMs);
    expect(service.frames.filter((f) => f.type === "auth.refresh")[0].data.accessToken).toContain(".");
    expect(client.state).toBe("online");
  });
});
