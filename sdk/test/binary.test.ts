// Messages as bytes, between clients and a real node.
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import WebSocket from "ws";
import { createBinaryLane, type BinaryMessage } from "../src/binary.js";
import { createClient } from "../src/client.js";
import type { Parlor, Room } from "../src/types.js";
import { MemoryStorage } from "./fake_service.js";
import { startNode, type RealNode } from "./node.js";

let node: RealNode;
const clients = new Set<Parlor>();

beforeAll(async () => { node = await startNode(); }, 300_000);
afterAll(() => node?.stop());
afterEach(() => {
  clients.forEach((client) => client.close());
  clients.clear();
});

function open(WebSocketClass: any): Parlor {
  const storage = new MemoryStorage();
  const client = createClient({ gameId: "1", storage, WebSocket: WebSocketClass }, node.url, () => {});
  clients.add(client);
  return client;
}

/** Two players with a lane and one without in a room. */
async function meet() {
  const lanes = [createBinaryLane({ WebSocket }), createBinaryLane({ WebSocket })];
  const players = [open(lanes[0].WebSocket), open(lanes[1].WebSocket), open(WebSocket)];
  await Promise.all(players.map((p) => p.ready));
  const rooms: Room[] = [await players[0].rooms.create({ maxPlayers: 3 })];
  for (const p of players.slice(1)) rooms.push(await p.rooms.join(rooms[0].roomId));
  const heard = lanes.map((lane) => {
    const messages: BinaryMessage[] = [];
    lane.onMessage((m) => messages.push(m));
    return messages;
  });
  await vi.waitFor(() => {
    for (const lane of lanes) expect(lane.send(rooms[0].roomId, 1, new Uint8Array())).toBe(true);
  }, 5000);
  await vi.waitFor(() => expect(Math.min(...heard.map((h) => h.length))).toBeGreaterThan(0), 5000);
  heard.forEach((h) => { h.length = 0; });
  return { lanes, players, rooms, heard };
}

it("sends bytes to binary clients and, in base64, to text clients", async () => {
  const { lanes, players, rooms, heard } = await meet();
  const text: any[] = [];
  rooms[2].on("message", (m: any) => m.op === "65535" && text.push(m));
  const payload = new Uint8Array([0, 255, 124, 10]);
  for (const latest of [false, true]) expect(lanes[0].send(rooms[0].roomId, 65535, payload, { latest })).toBe(true);
  await vi.waitFor(() => expect(heard[1].filter((m) => m.op === 65535)).toHaveLength(2), 5000);
  const got = heard[1].find((m) => m.op === 65535)!;
  expect({ ...got, payload: [...got.payload] })
    .toEqual({ roomId: rooms[0].roomId, from: players[0].user!.id, op: 65535, payload: [0, 255, 124, 10] });
  await vi.waitFor(() => expect(text).toHaveLength(2), 5000);
  expect(text[0]).toMatchObject({ payload: "AP98Cg==" });
});

it("keeps the messages of text clients on the rooms", async () => {
  const { rooms, heard } = await meet();
  const got: any[] = [];
  rooms[0].on("message", (m: any) => m.op !== "1" && got.push([m.op, m.payload]));
  rooms[2].send("7", { x: 1 });
  rooms[2].send("move", [2]);
  await vi.waitFor(() => expect(got).toEqual([["7", { x: 1 }], ["move", [2]]]), 5000);
  expect(heard[0].filter((m) => m.op === 7)).toEqual([]);
});

it("drops what cannot be sent, and refuses what never can", async () => {
  const { lanes, players, rooms } = await meet();
  const bytes = new Uint8Array(1);
  expect(lanes[0].send("00000000-0000-8000-8000-000000000000", 1, bytes)).toBe(false);
  expect(() => lanes[0].send(rooms[0].roomId, 65536, bytes)).toThrow(RangeError);
  expect(() => lanes[0].send(rooms[0].roomId, 1.5, bytes)).toThrow(RangeError);
  expect(() => lanes[0].send(rooms[0].roomId, 1, new Uint8Array(8193))).toThrow(RangeError);
  let sent = 0;
  while (lanes[0].send(rooms[0].roomId, 2, bytes)) sent++;
  expect(sent).toBeLessThanOrEqual(120); // else the service would close the socket
  players[0].close();
  expect(lanes[0].send(rooms[0].roomId, 1, bytes)).toBe(false);
});
