// The library for game servers, against a fake node over real sockets. It has the package ws where Node has
// no WebSocket.
import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  filePositions, GameError, ParlorError, server as connect, verifyWebhook, type Positions, type PositionStore, type Server,
  type ServerOptions,
} from "../src/server/index.js";
import { crc32c, hasRoom, parseShare } from "../src/server/share.js";
import { FakeFeed } from "./fake_feed.js";

vi.mock("../src/random.js", async (original) => ({ ...await original<object>(), jitter: () => 5 }));

let node: FakeFeed;
const running: Server[] = [];
const errors: any[] = [];

beforeEach(async () => { node = await new FakeFeed().listen(); });

afterEach(async () => {
  await Promise.all(running.splice(0).map((one) => one.close()));
  await node.close();
  errors.length = 0;
});

function start(o: Partial<ServerOptions> = {}): Server {
  const one = connect({ url: node.url, key: node.key, ...o });
  running.push(one);
  one.on("error", (e) => errors.push(e));
  return one;
}

/** A store in memory that outlives a server. */
function store(positions: Positions = {}): PositionStore & { saved: Positions } {
  return {
    saved: positions,
    load() { return this.saved; },
    async save(next) {
      await new Promise((resolve) => { setTimeout(resolve); });
      this.saved = next;
    },
  };
}

const until = (f: () => void | Promise<void>) => vi.waitFor(f, { timeout: 10_000, interval: 2 });

describe("events", () => {
  it("come once and in order, whatever the connection does, to who keeps positions", async () => {
    await fc.assert(fc.asyncProperty(
      fc.array(fc.record({
        feed: fc.constantFrom("e", "r0"), room: fc.nat(3), fault: fc.constantFrom(undefined, undefined, undefined, "close", "twice"),
        restart: fc.integer({ min: 0, max: 9 }), ms: fc.nat(2),
      }), { minLength: 1, maxLength: 40 }),
      async (steps) => {
        await node.close();
        node = await new FakeFeed().listen();
        const positions = store();
        const handled: number[][] = [[], [], [], []];
        const expected: number[][] = [[], [], [], []];
        const serve = async () => {
          const one = start({ positions });
          one.on("room.started", async ({ roomId, data }: any) => {
            if (data.ms) await new Promise((resolve) => { setTimeout(resolve, data.ms); });
            handled[+roomId].push(data.n);
          });
          await one.ready;
          return one;
        };
        let one = await serve();
        for (const [n, { feed, room, fault, restart, ms }] of steps.entries()) {
          node.fault = () => {
            node.fault = () => undefined;
            return fault as any;
          };
          const home = room < 2 ? "e" : "r0"; // a room has one feed
          node.append(feed === home ? feed : home, "room.started", String(room), { n, ms });
          expected[room].push(n);
          if (restart === 0) {
            await one.close();
            one = await serve();
          }
        }
        node.fault = () => undefined;
        await until(() => expect(handled).toEqual(expected));
        await one.close();
        expect(positions.saved).toEqual({
          e: node.position("e", node.feeds.get("e")!.log.length), r0: node.position("r0", node.feeds.get("r0")!.log.length),
        });
        expect(errors).toEqual([]);
      },
    ), { numRuns: 25 });
  }, 60_000);

  it("count as heard only behind those that are handled, so that a crash loses none", async () => {
    const positions = store();
    const one = start({ positions });
    const ends: (() => void)[] = [];
    one.on("room.started", () => new Promise<void>((resolve) => { ends.push(resolve); }));
    await one.ready;
    for (const room of ["1", "2", "3"]) node.append("e", "room.started", room);
    await until(() => expect(ends.length).toBe(3));
    ends[1]();
    ends[2]();
    await until(() => expect(positions.saved.e).toBe("0-a"));
    // Another process that begins now hears all three.
    const heard: string[] = [];
    const other = start({ positions: store({ ...positions.saved }) });
    other.on("room.started", (event) => { heard.push(event.roomId); });
    await until(() => expect(heard).toEqual(["1", "2", "3"]));
    ends[0]();
    await until(() => expect(positions.saved.e).toBe("3-a"));
  });

  it("of one room wait for each other, and those of other rooms do not", async () => {
    const one = start();
    const seen: string[] = [];
    let free = () => {};
    one.on("room.started", async ({ roomId }) => {
      seen.push(`begin ${roomId}`);
      if (roomId === "1") await new Promise<void>((resolve) => { free = resolve; });
      seen.push(`end ${roomId}`);
    });
    one.on("room.finished", ({ roomId }) => { seen.push(`finished ${roomId}`); });
    await one.ready;
    node.append("e", "room.started", "1");
    node.append("e", "room.finished", "1");
    node.append("e", "room.started", "2");
    await until(() => expect(seen).toEqual(["begin 1", "begin 2", "end 2"]));
    free();
    await until(() => expect(seen).toEqual(["begin 1", "begin 2", "end 2", "end 1", "finished 1"]));
  });

  it("are given again to a handler that throws, and pass after eight times", async () => {
    const one = start();
    let times = 0;
    const seen: string[] = [];
    one.on("room.started", ({ roomId }) => {
      times++;
      if (roomId === "1" && times < 3) throw new Error("not yet");
      if (roomId === "2") throw new Error("never");
      seen.push(roomId);
    });
    await one.ready;
    node.append("e", "room.started", "1");
    await until(() => expect(seen).toEqual(["1"]));
    expect(errors.map((e) => e.message)).toEqual(["not yet", "not yet"]);
    node.append("e", "room.started", "2");
    await until(() => expect(errors.length).toBe(10));
  });

  it("are asked for by the kinds of the listeners, and by the share", async () => {
    const one = start({ share: "1/2" });
    one.on("room.joined", () => {});
    one.on("ledger.entry", () => {});
    await one.ready;
    expect(node.subscriptions).toEqual([{ kinds: ["rooms", "seats", "money"], share: { of: 2, index: 1 }, after: {}, calls: false }]);
    one.on("tournament.settled", () => {});
    await until(() => expect(node.subscriptions[1]?.kinds).toEqual(["rooms", "seats", "money", "tournaments"]));
    const given = start({ kinds: ["tournaments"] });
    given.on("room.joined", () => {});
    await given.ready;
    expect(node.subscriptions[2].kinds).toEqual(["tournaments"]);
  });

  it("that are gone are replaced by the rooms of the share, before a position is saved", async () => {
    const rooms = ["0190a1b2-c3d4-8000-8000-000000000001", "0190a1b2-c3d4-8000-8000-000000000002",
      "0190a1b2-c3d4-8000-8000-000000000003", "0190a1b2-c3d4-8000-8000-000000000004"];
    for (const roomId of rooms) node.rooms.set(roomId, { roomId, status: "STARTED" });
    node.rooms.set("ended", { roomId: "ended", status: "FINISHED" });
    const share = { of: 2, index: 0 };
    const own = rooms.filter((roomId) => hasRoom(share, roomId));
    expect(own.length).toBeGreaterThan(0);
    node.append("e", "room.started", rooms[0]);
    node.feeds.get("e")!.lost = 1;
    const positions = store({ e: "0-a", r0: "0-a" });
    const one = start({ positions, share });
    const read: string[] = [];
    let free: (() => void) | undefined;
    one.onRoom(async ({ roomId }) => {
      if (!free) await new Promise<void>((resolve) => { free = resolve; });
      read.push(roomId);
    });
    await one.ready;
    await until(() => expect(read.length).toBe(own.length - 1));
    expect(positions.saved).toEqual({ e: "0-a", r0: "0-a" });
    free!();
    await until(() => expect(positions.saved).toEqual({ e: "1-a", r0: "0-a" }));
    expect(read.sort()).toEqual([...own].sort());
    // The same while it is subscribed, in another history.
    node.feeds.get("r0")!.nonce = "b";
    node.sayToAll({ type: "game.gap", feed: "r0", position: "0-b" });
    await until(() => expect(positions.saved).toEqual({ e: "1-a", r0: "0-b" }));
    expect(read.length).toBe(2 * own.length);
  });

  it("that nobody sends move the position as well", async () => {
    const positions = store();
    const one = start({ positions });
    await one.ready;
    node.sayToAll({ type: "game.position", feed: "e", position: "512-a" });
    await until(() => expect(positions.saved.e).toBe("512-a"));
  });
});

describe("changes", () => {
  it("happen once, whatever is lost", async () => {
    const one = start();
    await one.ready;
    let lost = 0;
    node.fault = (type) => (type === "reply" && lost++ < 3 ? "close" : undefined);
    await Promise.all([one.finish("1", [{ userId: 7, place: 1 }]), one.start({ roomId: "2" }), one.cancel("3")]);
    expect(lost).toBeGreaterThan(3);
    expect(node.changes.map(({ type }) => type).sort()).toEqual(["room.cancel", "room.finish", "room.start"]);
  });

  it("wait for the store, and reject with what the service refuses", async () => {
    const one = start();
    await one.ready;
    let times = 0;
    node.refuse = (type) => (type === "room.start" && times++ < 2 ? [503, "store_unavailable", true] : undefined);
    await one.start("1");
    expect(times).toBe(3);
    node.refuse = () => [409, "already_started"];
    await expect(one.start("1")).rejects.toMatchObject({ name: "ParlorError", code: "already_started", status: 409 });
  });

  it("of the shared state find its version, unless they name one", async () => {
    node.shared = { version: 4, value: {} };
    const one = start();
    await one.ready;
    expect(await one.setState("1", { board: "x" })).toBe(5);
    await expect(one.setState("1", { board: "o" }, { version: 4 })).rejects.toMatchObject({ code: "version_conflict" });
    await one.setTurn("1", 7, 30);
    expect(node.changes.at(-1)).toEqual({ type: "room.turn.set", data: { roomId: "1", userId: 7, seconds: 30 } });
  });

  it("with one key are one", async () => {
    const one = start();
    await one.ready;
    await one.finish("1", [], { key: "finish-1" });
    await one.finish("1", [], { key: "finish-1" });
    expect(node.changes.length).toBe(1);
  });
});

describe("calls", () => {
  it("are answered, one after the other in a room", async () => {
    const one = start();
    let taken = 0;
    one.onCall("take", async ({ from, payload }) => {
      const before = taken;
      await new Promise((resolve) => { setTimeout(resolve, 1); });
      taken = before + payload.stones;
      return { from, taken };
    });
    one.onCall("refuse", () => { throw new GameError("not_your_turn", "Wait."); });
    one.onCall("break", () => { throw new Error("a secret"); });
    one.onCall("nothing", () => {});
    await one.ready;
    node.call("1", "a", "take", { stones: 1 });
    node.call("1", "b", "take", { stones: 2 });
    for (const op of ["refuse", "break", "nothing", "other"]) node.call("2", op, op, null);
    await until(() => expect(node.answers.length).toBe(6));
    const answer = (callId: string) => node.answers.find((one) => one.callId === callId);
    expect(answer("a")).toEqual({ callId: "a", payload: { from: 7, taken: 1 } });
    expect(answer("b")).toEqual({ callId: "b", payload: { from: 7, taken: 3 } });
    expect(answer("refuse")).toEqual({ callId: "refuse", error: { code: "not_your_turn", detail: "Wait." } });
    expect(answer("break")).toEqual({ callId: "break", error: { code: "internal" } });
    expect(answer("nothing")).toEqual({ callId: "nothing", payload: null });
    expect(answer("other").error.code).toBe("unknown_op");
    expect(errors.map((e) => e.message)).toEqual(["a secret"]);
  });

  it("are answered on the connection that they came by only", async () => {
    const one = start();
    let free = () => {};
    one.onCall("slow", () => new Promise<void>((resolve) => { free = resolve; }));
    one.onCall("quick", () => 1);
    await one.ready;
    node.call("1", "a", "slow", null);
    await until(() => expect(free.length).toBe(1));
    node.drop();
    await until(() => expect(node.subscriptions.length).toBe(2));
    free();
    await until(() => expect(one.state).toBe("online"));
    node.call("1", "b", "quick", null);
    await until(() => expect(node.answers).toEqual([{ callId: "b", payload: 1 }]));
  });

  it("and messages go out once", async () => {
    const one = start();
    await one.send("1", "hello", { x: 1 }, { to: [7] });
    expect(node.sent).toEqual([{ roomId: "1", op: "hello", payload: { x: 1 }, to: [7] }]);
    await one.message(7, "gift", { gold: 1 });
    expect(node.messages).toEqual([{ path: "admin/users/7/messages", op: "gift", payload: { gold: 1 } }]);
  });
});

describe("a server", () => {
  it("ends when the service refuses it, and says why", async () => {
    const one = start({ key: "psk_1_wrong" });
    await expect(one.ready).rejects.toMatchObject({ code: "unauthenticated" });
    expect(one.state).toBe("closed");
    expect(errors.map((e) => e.code)).toEqual(["unauthenticated"]);
    await expect(one.start("1")).rejects.toMatchObject({ code: "unauthenticated" });
  });

  it("does not begin without the positions that it should have", async () => {
    const one = start({ positions: { load: () => Promise.reject(new Error("no disk")), save: () => {} } });
    await expect(one.ready).rejects.toThrow("no disk");
    expect(node.subscriptions).toEqual([]);
  });

  it("waits for its handlers when it is closed, and hears nothing more", async () => {
    const positions = store();
    const one = start({ positions });
    const seen: string[] = [];
    let free = () => {};
    one.on("room.started", async ({ roomId }) => {
      await new Promise<void>((resolve) => { free = resolve; });
      await one.finish(roomId, []);
      seen.push(roomId);
    });
    await one.ready;
    node.append("e", "room.started", "1");
    await until(() => expect(free.length).toBe(1));
    const closed = one.close();
    await until(() => { node.append("e", "room.started", "2"); });
    free();
    await closed;
    expect([seen, positions.saved.e, one.state]).toEqual([["1"], "1-a", "closed"]);
    await expect(one.start("1")).rejects.toMatchObject({ code: "closed" });
  });

  it("throws a TypeError at once, with the fix", () => {
    const cases: [any, string][] = [
      [undefined, "url"], [{ url: "node" }, "url"], [{ url: node.url }, "key"],
      [{ url: node.url, key: "k", share: { of: 2, index: 2 } }, "share"], [{ url: node.url, key: "k", share: "1" }, "share"],
    ];
    for (const [options, text] of cases) {
      expect(() => connect(options)).toThrow(TypeError);
      expect(() => connect(options)).toThrow(text);
    }
    expect(() => new GameError("Not Your Turn")).toThrow(TypeError);
  });
});

describe("shares", () => {
  it("are those of CRC-32C", () => {
    expect(crc32c("123456789")).toBe(0xe3069283);
    expect(crc32c("")).toBe(0);
    expect(parseShare("3/4")).toEqual({ of: 4, index: 3 });
    expect(parseShare("")).toBeUndefined();
  });
});

describe("positions in a file", () => {
  it("are there for the next process", async () => {
    const folder = mkdtempSync(join(tmpdir(), "parlor-positions-"));
    try {
      const file = filePositions(join(folder, "positions.json"));
      expect(await file.load()).toBeNull();
      await file.save({ e: "1-a" });
      await file.save({ e: "2-a" });
      expect(await filePositions(join(folder, "positions.json")).load()).toEqual({ e: "2-a" });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("webhooks", () => {
  const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  const body = '{"test": 2432232314}';
  const at = 1614265330;
  const headers = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": String(at),
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  };
  const other = `whsec_${Buffer.from("another secret of a webhook").toString("base64")}`;

  beforeEach(() => { vi.spyOn(Date, "now").mockReturnValue(at * 1000); });
  afterEach(() => { vi.restoreAllMocks(); });

  it("are those of the published vector", () => {
    expect(verifyWebhook(headers, body, secret)).toEqual({ id: headers["webhook-id"], test: 2432232314 });
    expect(verifyWebhook(new Headers(headers), new TextEncoder().encode(body), [other, secret])).toMatchObject({ test: 2432232314 });
    const both = { ...headers, "webhook-signature": `v2,abc v1,AAAA ${headers["webhook-signature"]}` };
    expect(verifyWebhook(both, body, secret)).toMatchObject({ test: 2432232314 });
  });

  it.each([
    ["another body", headers, `${body} `, secret, at],
    ["another secret", headers, body, other, at],
    ["an old one", headers, body, secret, at + 301],
    ["one of the future", headers, body, secret, at - 301],
    ["no signature", { ...headers, "webhook-signature": "" }, body, secret, at],
    ["no id", { ...headers, "webhook-id": undefined }, body, secret, at],
    ["no time", { ...headers, "webhook-timestamp": "soon" }, body, secret, at],
    ["another time", { ...headers, "webhook-timestamp": String(at + 1) }, body, secret, at],
  ])("are refused: %s", (_, given, text, key, now) => {
    vi.spyOn(Date, "now").mockReturnValue(now * 1000);
    expect(() => verifyWebhook(given, text, key)).toThrow(ParlorError);
    expect(() => verifyWebhook(given, text, key)).toThrow(expect.objectContaining({ code: "unauthenticated", status: 401 }));
  });

  it("need a secret", () => {
    expect(() => verifyWebhook(headers, body, "whsec_")).toThrow(TypeError);
    const signature = createHmac("sha256", "").update("x").digest("base64");
    expect(() => verifyWebhook({ ...headers, "webhook-signature": `v1,${signature}` }, body, [])).toThrow(ParlorError);
  });
});
