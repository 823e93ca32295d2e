import { afterEach, describe, expect, it, vi } from "vitest";
import { withLock } from "../src/lock.js";
import { openStorage } from "../src/storage.js";
import { FakeService, MemoryStorage } from "./fake_service.js";
import { openTab, run, settle, useFakeClock } from "./tab.js";

useFakeClock();
afterEach(() => { vi.unstubAllGlobals(); });

const paths = (service: FakeService, path: string) => service.calls.filter((call) => call.path === path);

/** A lock manager as of a browser: one holder of a name at a time. */
function fakeLocks() {
  const tails = new Map<string, Promise<unknown>>();
  return {
    request(name: string, f: () => Promise<unknown>) {
      const next = (tails.get(name) ?? Promise.resolve()).then(f, f);
      tails.set(name, next);
      return next;
    },
  };
}

describe("signing in", () => {
  it("stores the device's secret before the first request", async () => {
    const service = new FakeService();
    const storage = new MemoryStorage();
    let stored: string | undefined;
    service.fault = (_, path) => {
      const entry = [...storage.map].find(([key]) => key.endsWith(":device"));
      if (path === "auth/guest") stored ??= JSON.parse(entry![1]);
      return undefined;
    };
    await settle(openTab(service, { storage, username: "Ann" }).ready);
    expect(stored).toMatch(/^[0-9a-f]{64}$/);
    expect(paths(service, "auth/guest")[0].body).toEqual({ gameId: 1, username: "Ann", deviceSecret: stored });
  });

  it("makes one guest although replies are lost", async () => {
    const service = new FakeService();
    let lost = 3;
    service.fault = (_, path) => (path === "auth/guest" && lost-- > 0 ? "reply" : undefined);
    const client = openTab(service);
    await settle(client.ready);
    expect(service.seenSecrets.size).toBe(1);
    expect(client.user).toEqual([...service.seenSecrets.values()][0]);
  });

  it("takes the stored session on the next page", async () => {
    const service = new FakeService();
    const storage = new MemoryStorage();
    const first = openTab(service, { storage });
    await settle(first.ready);
    first.close();
    const second = openTab(service, { storage });
    await settle(second.ready);
    expect(second.user).toEqual(first.user);
    expect(paths(service, "auth/guest")).toHaveLength(1);
    expect(service.refreshes).toBe(0);
  });

  it("knows the player of a stored session without a connection", async () => {
    const service = new FakeService();
    const storage = new MemoryStorage();
    const first = openTab(service, { storage });
    await settle(first.ready);
    first.close();
    await run(service.tokenLifeMs);
    service.reachable = false;
    const second = openTab(service, { storage });
    await run(5000);
    expect(second.user).toEqual(first.user);
    expect(second.state).toBe("connecting");
  });

  it("uses getToken, and calls it again when its token has ended", async () => {
    const service = new FakeService();
    const user = service.newUser("Bob");
    const getToken = vi.fn(async () => service.tokenFor(user));
    const client = openTab(service, { getToken });
    await settle(client.ready);
    expect(client.user).toEqual(user);
    expect(paths(service, "auth/guest")).toHaveLength(0);
    service.endSessions();
    await run(2000);
    expect(client.state).toBe("online");
    expect(getToken).toHaveBeenCalledTimes(2);
  });

  it("comes back as the same player when the session was ended", async () => {
    const service = new FakeService();
    const client = openTab(service);
    await settle(client.ready);
    const { user } = client;
    service.endSessions();
    (service as any).refreshTokens.clear();
    await run(3000);
    expect(client.state).toBe("online");
    expect(client.user).toEqual(user);
    expect(service.seenSecrets.size).toBe(1);
  });

  it("says whether the session survives the page", async () => {
    const service = new FakeService();
    for (const [storage, persistent] of [[new MemoryStorage(), true], [false, false]] as const) {
      const told: any[] = [];
      const client = openTab(service, { storage });
      client.on("user", (e) => told.push(e.persistent));
      await settle(client.ready);
      expect(told).toEqual([persistent]);
    }
  });

  it("ends for an unknown game, with the reason", async () => {
    const service = new FakeService();
    const problem = { status: 404, body: { code: "game_not_found", status: 404, detail: "no" } };
    service.failure = (_, path) => path === "auth/guest" && problem;
    const client = openTab(service);
    const errors: any[] = [];
    client.on("error", (e) => errors.push(e));
    await expect(settle(client.ready)).rejects.toMatchObject({ code: "game_not_found", status: 404 });
    expect(client.state).toBe("closed");
    expect(errors).toHaveLength(1);
  });

  it("tells the origin and the call that allows it, once", async () => {
    const service = new FakeService();
    vi.stubGlobal("location", { origin: "https://game.example" });
    const log = vi.spyOn(console, "error").mockImplementation(() => {});
    const fetch = async (address: string) => {
      if (address.endsWith("/sdk/debug.v1.js")) return {}; // all else is hidden from this origin
      throw new TypeError("Failed to fetch");
    };
    const client = openTab(service, { fetch: fetch as any });
    await expect(settle(client.ready)).rejects.toMatchObject({ code: "forbidden" });
    await run(60_000);
    expect(log).toHaveBeenCalledTimes(1);
    expect(String(log.mock.calls[0][0])).toContain('/api/v1/admin/games/1 {"origins": ["https://game.example"]}');
    log.mockRestore();
  });
});

describe("renewal", () => {
  it("renews before the token ends, by the service's clock", async () => {
    for (const clockAheadMs of [0, 86_400_000, -86_400_000]) {
      const service = new FakeService();
      service.clockAheadMs = clockAheadMs;
      const client = openTab(service);
      await settle(client.ready);
      await run(service.tokenLifeMs * 3);
      expect(service.refreshes).toBeGreaterThanOrEqual(3);
      expect(service.refreshes).toBeLessThanOrEqual(5);
      expect(service.calls.filter((call) => call.status === 401)).toEqual([]);
      expect(Math.abs(client.time() - service.now())).toBeLessThan(100);
    }
  });

  it("renews after sleep, when timers come late", async () => {
    const service = new FakeService();
    const client = openTab(service);
    await settle(client.ready);
    vi.setSystemTime(Date.now() + 10 * service.tokenLifeMs);
    await run(60_000);
    expect(service.refreshes).toBe(1);
    const balances = client.wallet.balances();
    expect(await settle(balances)).toHaveLength(1);
  });

  for (const by of ["locks", "lease"]) {
    it(`two tabs renew once, by ${by}`, async () => {
      vi.stubGlobal("navigator", { onLine: true, locks: by === "locks" ? fakeLocks() : undefined });
      const service = new FakeService();
      const storage = new MemoryStorage();
      const [one, two] = [openTab(service, { storage }), openTab(service, { storage })];
      await settle(Promise.all([one.ready, two.ready]));
      expect(service.seenSecrets.size).toBe(1);
      expect(paths(service, "auth/guest")).toHaveLength(1);
      vi.setSystemTime(Date.now() + service.tokenLifeMs);
      await settle(Promise.all([one.wallet.balances(), two.wallet.balances()]));
      expect(service.refreshes).toBe(1);
      expect(one.user).toEqual(two.user);
    });
  }

  it("goes on without locks in a frame that may not lock", async () => {
    const locks = { request: async () => { throw new Error("SecurityError"); } };
    vi.stubGlobal("navigator", { onLine: true, locks });
    const service = new FakeService();
    await settle(openTab(service).ready);
    expect(service.seenSecrets.size).toBe(1);
  });

  it("takes over the lease of a tab that died", async () => {
    const storage = new MemoryStorage();
    storage.setItem("lock:lease", JSON.stringify({ owner: "dead", until: Date.now() + 15_000 }));
    const order: string[] = [];
    const kv = openStorage(storage);
    const both = ["a", "b"].map((name) => withLock("lock", kv, async () => {
      order.push(`${name} in`);
      await new Promise((resolve) => setTimeout(resolve, 500));
      order.push(`${name} out`);
    }));
    await settle(Promise.all(both));
    expect([["a in", "a out", "b in", "b out"], ["b in", "b out", "a in", "a out"]]).toContainEqual(order);
  });

  it("tries a refused token once more, with a new one and the same key", async () => {
    const service = new FakeService();
    const client = openTab(service);
    await settle(client.ready);
    (service as any).sessions.clear(); // the sockets stay
    await settle(client.rooms.create({ maxPlayers: 2 }));
    const creates = paths(service, "game-session/create");
    expect(creates.map((call) => call.status)).toEqual([401, 201]);
    expect(creates[0].key).toBe(creates[1].key);
  });
});

describe("storage", () => {
  it("falls back to memory where storage throws", async () => {
    const forbidden = new Proxy({} as Storage, { get() { throw new Error("SecurityError"); } });
    const kv = openStorage(forbidden);
    await kv.set("a", "1");
    expect(await kv.get("a")).toBe("1");
    expect(await kv.keys("")).toEqual(["a"]);
    expect(await kv.isPersistent()).toBe(false);
  });

  it("keeps what no longer fits, and does not lose what is stored", async () => {
    const storage = new MemoryStorage();
    const kv = openStorage(storage);
    await kv.set("session", "s");
    storage.setItem = () => { throw new Error("QuotaExceededError"); };
    await kv.set("save", "large");
    expect([await kv.get("session"), await kv.get("save")]).toEqual(["s", "large"]);
    await kv.remove("save");
    expect(await kv.get("save")).toBe(null);
  });
});

describe("ending", () => {
  it("signOut forgets the player and ends the session", async () => {
    const service = new FakeService();
    const storage = new MemoryStorage();
    const client = openTab(service, { storage });
    await settle(client.ready);
    await settle(client.account.signOut());
    expect(client.state).toBe("closed");
    expect(storage.map.size).toBe(0);
    expect(paths(service, "auth/logout")[0].body.refreshToken).toMatch(/^refresh/);
    const next = openTab(service, { storage });
    await settle(next.ready);
    expect(next.user!.id).not.toBe(client.user!.id);
  });

  it("close ends what is not finished", async () => {
    const service = new FakeService();
    const client = openTab(service);
    const room = await settle(client.rooms.create({ maxPlayers: 2 }));
    await settle(client.ready);
    const load = client.progress.load("main");
    const next = room.once("joined");
    const reading = (async () => { for await (const _ of room.events()); return "done"; })();
    const unfinished = Promise.allSettled([load, next]);
    await run(1);
    client.close();
    expect(await settle(unfinished)).toMatchObject([{ reason: { code: "closed" } }, { reason: { code: "closed" } }]);
    expect(await settle(reading)).toBe("done");
    await expect(settle(client.wallet.balances())).rejects.toMatchObject({ code: "closed" });
    expect(vi.getTimerCount()).toBeLessThan(5);
    await run(60_000);
    expect(vi.getTimerCount()).toBe(0);
    expect(service.sockets.size).toBe(0);
  });
});
