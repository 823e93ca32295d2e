// The bridge for engines, over a client that a test makes: what becomes JSON, and what is freed.
import { readFileSync } from "node:fs";
import { runInNewContext } from "node:vm";
import { beforeEach, expect, it, vi } from "vitest";

const source = readFileSync(new URL("../engines/bridge.js", import.meta.url), "utf8");
const wireTypes = readFileSync(new URL("../src/generated/events.ts", import.meta.url), "utf8");

let heard: [string, string, any][];
let listeners: Map<string, (e: unknown) => void>;
let client: any;
let page: any;
let bridge: any;

/** A room as the SDK gives it: its methods are inherited. */
function makeRoom(roomId: string) {
  const own = new Map<string, (e: unknown) => void>();
  const methods = {
    shared: { value: { price: 5, priceAmount: "500" }, set: async () => 3 },
    on(name: string, listener: (e: unknown) => void, { signal }: { signal: AbortSignal }) {
      own.set(name, listener);
      signal.addEventListener("abort", () => own.delete(name));
    },
    send() {},
    finish: async () => room,
  };
  const room = Object.assign(Object.create(methods), {
    roomId, roomEntry: 2.5, roomEntryAmount: "250", rakeBps: 500, metadata: { held: 1, heldAmount: "x" },
    payouts: [{ userId: 7, place: 1, payout: 5, amount: "500" }],
  });
  return { room, own };
}

beforeEach(() => {
  heard = [];
  listeners = new Map();
  client = {
    state: "idle", on: (name: string, listener: (e: unknown) => void) => listeners.set(name, listener),
    close: () => listeners.clear(), time: () => 1234,
    rooms: {}, wallet: { format: (amount: string, token: string) => {
      if (token !== "GOLD") throw new Error("unknown");
      return `${amount} Gold`;
    } },
  };
  page = { Parlor: { init: vi.fn(() => client) }, AbortController, console };
  page.globalThis = page;
  runInNewContext(source, page);
  bridge = page.ParlorBridge;
});

const open = () => bridge.open('{"gameId":1}', (target: string, name: string, json: string) =>
  heard.push([target, name, JSON.parse(json)]));

it("amounts are exact texts, and what belongs to the game is as it was", async () => {
  const { room } = makeRoom("r1");
  client.rooms.get = async () => room;
  open();
  await bridge.ask("1", "rooms.get", '["r1"]');
  expect(heard.at(-1)).toEqual(["1", "ok", {
    roomId: "r1", roomEntryAmount: "250", rakeBps: 500, metadata: { held: 1, heldAmount: "x" },
    payouts: [{ userId: 7, place: 1, amount: "500" }], shared: { price: 5, priceAmount: "500" },
  }]);
  listeners.get("balance")!({ tokenId: "GOLD", volume: 97.5, amount: "9750", held: 2.5, heldAmount: "250" });
  expect(heard.at(-1)).toEqual(["", "balance", { tokenId: "GOLD", amount: "9750", heldAmount: "250" }]);
  expect([bridge.format("250", "GOLD"), bridge.format("1", "NONE"), bridge.time()]).toEqual(["250 Gold", "", 1234]);
});

it("every event of a room arrives with the room, until it is released", async () => {
  const { room, own } = makeRoom("r1");
  client.rooms.join = async () => room;
  open();
  await bridge.ask("1", "rooms.join", '["r1"]');
  await bridge.ask("2", "rooms.join", '["r1"]'); // the same object: its events arrive once
  const named = [...wireTypes.matchAll(/"room\.(\w+)"/g)].map((m) => m[1]!.replace("_c", "C"))
    .filter((name) => !["created", "snapshot"].includes(name));
  expect([...own.keys()].sort()).toEqual([...new Set([...named, "resynced"])].sort());
  expect(heard.at(-1)).toMatchObject(["2", "ok", { roomId: "r1" }]);
  await bridge.ask("3", "room.on", '["r1","started"]'); // a listener is no JSON
  expect(heard.at(-1)).toMatchObject(["3", "error", { code: "bad_call", detail: "there is no room.on" }]);
  heard = [];
  own.get("started")!({ type: "started" });
  own.get("message")!({ from: 7, op: "move", payload: { volume: 1, amount: "1" } });
  expect(heard).toMatchObject([
    ["r1", "started", { room: { roomId: "r1" } }], ["r1", "message", { payload: { volume: 1, amount: "1" } }],
  ]);
  expect(heard[1]![2].room).toBeUndefined();
  await bridge.ask("3", "room.shared.set", '["r1",{"a":1}]');
  expect(heard.at(-1)).toEqual(["3", "ok", 3]);
  await bridge.ask("4", "room.release", '["r1"]');
  expect(own.size).toBe(0);
  await bridge.ask("5", "room.send", '["r1","move",{}]');
  expect(heard.at(-1)).toMatchObject(["5", "error", { code: "bad_call" }]);
});

it("errors have a code and a sentence", async () => {
  client.rooms.create = async () => {
    throw Object.assign(new Error("insufficient_funds: too little"), {
      code: "insufficient_funds", detail: "too little", status: 402, retryable: false,
      data: { required: 5, requiredAmount: "500" },
    });
  };
  open();
  await bridge.ask("1", "rooms.create", "[{}]");
  expect(heard.at(-1)).toEqual(["1", "error", {
    code: "insufficient_funds", detail: "too little", status: 402, retryable: false, data: { requiredAmount: "500" },
  }]);
  for (const [method, args] of [["rooms.creat", "[]"], ["game.play", "[]"], ["rooms.create", "[", "no JSON"]]) {
    await bridge.ask("2", method, args);
    expect(heard.at(-1), method).toMatchObject(["2", "error", { code: "bad_call" }]);
  }
});

it("an engine that asks gets what has come; messages beyond 1,000 are lost, events are not", async () => {
  const { room, own } = makeRoom("r1");
  client.rooms.get = async () => room;
  bridge.open('{"gameId":1}');
  await bridge.ask("1", "rooms.get", '["r1"]');
  expect(JSON.parse(bridge.take()).map((m: unknown[]) => m.slice(0, 2))).toEqual([["", "state"], ["1", "ok"]]);
  expect(bridge.take()).toBe("");
  own.get("started")!({});
  for (let n = 0; n < 1500; n++) own.get("message")!({ from: 7, op: "move", payload: n });
  own.get("finished")!({});
  const taken = JSON.parse(bridge.take());
  expect(taken.length).toBe(1000);
  expect([taken[0][1], taken.at(-1)[1], taken.at(-2)[2].payload]).toEqual(["started", "finished", 1499]);
});

it("rooms that have ended make place for new ones", async () => {
  const rooms = Array.from({ length: 20 }, (_, n) => makeRoom(`r${n}`));
  client.rooms.get = async (id: string) => rooms[Number(id.slice(1))]!.room;
  open();
  const get = (n: number) => bridge.ask(`${n}`, "rooms.get", `["r${n}"]`);
  for (let n = 0; n < 16; n++) await get(n);
  rooms[3]!.room.finishedAt = rooms[5]!.room.finishedAt = "2026-11-20T00:00:00Z";
  await get(16);
  await get(17);
  await get(18);
  expect(rooms.flatMap(({ own }, n) => (own.size ? [] : [n]))).toEqual([3, 5, 19]);
});

it("options come from the page and from the engine, and a mistake in them is an error of the engine's", () => {
  page.parlorOptions = { gameId: 2, storage: false };
  open();
  expect(page.Parlor.init.mock.lastCall).toEqual([{ gameId: 1, storage: false }]);
  page.Parlor.init.mockImplementationOnce(() => { throw new TypeError("gameId is missing"); });
  open();
  expect(heard.at(-1)).toMatchObject(["", "error", { code: "bad_call", detail: "gameId is missing" }]);
});

it("an engine that fails on one message gets the next", () => {
  const errors = vi.spyOn(console, "error").mockImplementation(() => {});
  const receive = vi.fn(() => { throw new Error("of the engine"); });
  bridge.open('{"gameId":1}', receive);
  listeners.get("draining")!({ reconnectInMs: 5 });
  expect([receive.mock.calls.length, errors.mock.calls.length]).toEqual([2, 2]);
  errors.mockRestore();
});

it("closing frees the rooms and the client", async () => {
  const { room, own } = makeRoom("r1");
  client.rooms.get = async () => room;
  open();
  await bridge.ask("1", "rooms.get", '["r1"]');
  bridge.close();
  expect([own.size, listeners.size, bridge.take()]).toEqual([0, 0, ""]);
});
