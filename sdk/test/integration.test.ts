// The SDK against a real node, with real sockets.
import { createServer, connect, type Server, type Socket as TcpSocket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import WebSocket from "ws";
import { createClient } from "../src/client.js";
import { init } from "../src/index.js";
import { GameError, server as connectServer, type Positions, type Server as GameServer } from "../src/server/index.js";
import type { AskOptions, Options, Parlor, Room } from "../src/types.js";
import { MemoryStorage } from "./fake_service.js";
import { startNode, type RealNode } from "./node.js";

let node: RealNode;
let relay: Relay;
const clients = new Set<Parlor>();

/** Stands between the clients and the node, and cuts their connections on request. */
interface Relay {
  url: string;
  cut(): void;
  refuse: boolean;
  server: Server;
}

function startRelay(target: string): Promise<Relay> {
  const port = Number(new URL(target).port);
  const open = new Set<TcpSocket>();
  const server = createServer((near) => {
    if (relay.refuse) return void near.destroy();
    const far = connect(port, "127.0.0.1");
    for (const socket of [near, far]) {
      open.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        open.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far).pipe(near);
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => {
    const { port } = server.address() as { port: number };
    resolve({
      url: `http://127.0.0.1:${port}`, server, refuse: false,
      cut: () => { for (const socket of [...open]) socket.destroy(); },
    });
  }));
}

function open(o: Partial<Options> = {}): Parlor {
  const client = createClient({ gameId: "1", storage: new MemoryStorage(), WebSocket, ...o }, relay.url, () => {});
  client.on("error", (e) => { failures.push(e); });
  clients.add(client);
  return client;
}

const failures: unknown[] = [];
const as = (name: "ada" | "bob" | "cleo") => open({ getToken: async () => node.tokens[name] });

async function waitFor(condition: () => boolean, what: string) {
  const end = Date.now() + 15_000;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`waited for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

beforeAll(async () => {
  node = await startNode({ PARLOR_RATE_LIMITS: "off" });
  relay = await startRelay(node.url);
}, 300_000);

afterEach(() => {
  for (const client of clients) client.close();
  clients.clear();
  expect(failures.splice(0)).toEqual([]);
});

afterAll(async () => {
  relay?.cut();
  relay?.server.close();
  await node?.stop();
});

/** Waits until a room of the SDK is that of the service: who is connected changes by itself. */
async function wantSame(room: any, read: () => Promise<any>) {
  const copy = (r: any) => JSON.parse(JSON.stringify(r));
  await vi.waitFor(async () => {
    const truth = await read();
    expect(copy(room)).toEqual(copy(truth));
  }, { timeout: 15_000 });
}

describe("a real node", () => {
  it("shows who has reported the result of a room without a game server, in seating order", async () => {
    const [ada, bob] = [as("ada"), as("bob")];
    const open = async () => {
      const room = await ada.rooms.create({ maxPlayers: 2, entryTokenId: 1, roomEntry: "2.5", settlement: "consensus" });
      const same = await bob.rooms.join(room.roomId);
      await room.start();
      await waitFor(() => same.status === "STARTED", "bob hears of the start");
      return [room, same] as const;
    };
    const ranking = (first: any, second: any) =>
      [{ userId: first.user.id, place: 1 }, { userId: second.user.id, place: 2 }];
    const wantTruth = async (...rooms: any[]) => {
      const truth = () => node.call(node.tokens.ada, "GET", `game-session/get?roomId=${rooms[0].roomId}`);
      for (const room of rooms) await wantSame(room, truth);
    };
    const [room, same] = await open();
    expect(room.reportedBy).toEqual([]);
    await same.finish(ranking(bob, ada));
    await waitFor(() => room.reportedBy!.length === 1, "ada hears of the report");
    await wantTruth(room, same);
    await room.finish(ranking(ada, bob)); // each says that they won
    await waitFor(() => same.status === "DISPUTED", "bob hears of the dispute");
    expect([room.status, room.reportedBy]).toEqual(["DISPUTED", [ada.user!.id, bob.user!.id]]);
    expect(room.disputedAt).toBeTruthy();
    await wantTruth(room, same);
    await node.call(node.adminKey, "POST", `admin/rooms/${room.roomId}/resolve`, { results: ranking(bob, ada) });
    await waitFor(() => room.status === "FINISHED" && same.status === "FINISHED", "the operator decides");
    await wantTruth(room, same);

    const [next, sameNext] = await open();
    await next.finish(ranking(bob, ada)); // a report against oneself is enough
    await waitFor(() => sameNext.status === "FINISHED", "bob hears of the end");
    expect(next.disputedAt).toBeNull();
    await wantTruth(next, sameNext);
  });

  it("two players play a paid room through", async () => {
    const [ada, bob] = [as("ada"), as("bob")];
    await Promise.all([ada.ready, bob.ready]);
    const before = (await ada.wallet.balance("GOLD")).amount;
    const balances: any[] = [];
    ada.on("balance", (e) => balances.push(e.reason));
    const room = await ada.rooms.create({ maxPlayers: 3, entryTokenId: 1, roomEntry: "2.5", payout: [10_000] });
    const heard: string[] = [];
    const types = [
      "joined", "ready", "left", "hostChanged", "started", "finished", "rematch", "message", "resynced",
    ] as const;
    for (const type of types) {
      room.on(type, (e: any) => heard.push(e.type));
    }
    const same = await bob.rooms.join({ code: room.code! });
    expect(same.participants.map((u) => u.id)).toEqual([ada.user!.id, bob.user!.id]);
    await same.setReady();
    await waitFor(() => room.seats[1]?.ready, "bob is ready");
    await room.start();
    expect(room.status).toBe("STARTED");
    const message = same.once("message");
    room.send("move", { x: 3 });
    expect(await message).toMatchObject({ from: ada.user!.id, op: "move", payload: { x: 3 } });
    const aim = same.once("message");
    room.send("aim", [3, 4], { latest: true, to: [bob.user!.id] });
    expect(await aim).toMatchObject({ op: "aim", payload: [3, 4] });
    await expect(ada.rooms.join(room.roomId)).resolves.toBe(room);
    await node.call(node.serverKey, "POST", "game-session/finish", {
      roomId: room.roomId, results: [{ userId: ada.user!.id, place: 1 }, { userId: bob.user!.id, place: 2 }],
    });
    await waitFor(() => room.status === "FINISHED" && same.status === "FINISHED", "the room ends");
    expect(heard).toEqual(["joined", "ready", "started", "finished"]);
    // What events made of the room is what the service says, field by field.
    const truth = (of: any) => () => node.call(node.tokens.ada, "GET", `game-session/get?roomId=${of.roomId}`);
    await wantSame(room, truth(room));
    await wantSame(same, truth(same));
    await waitFor(() => balances.includes("payout"), "the payout");
    expect(BigInt((await ada.wallet.balance("GOLD")).amount)).toBe(BigInt(before) + 250n);
    const again = await room.rematch();
    await waitFor(() => same.rematchRoomId === again.roomId, "the rematch");
    const joined = await bob.rooms.join(again.roomId);
    await waitFor(() => again.participants.length === 2, "bob joins again");
    await wantSame(again, truth(again));
    await joined.leave();
    await again.cancel();
    await waitFor(() => again.status === "CANCELLED", "the room is cancelled");
    await wantSame(again, truth(again));
  }, 60_000);

  it("follows seats, hosts and automatic starts field by field", async () => {
    const [ada, bob, cleo] = [as("ada"), as("bob"), as("cleo")];
    await Promise.all([ada.ready, bob.ready, cleo.ready]);
    const room = await ada.rooms.create({ maxPlayers: 2, autoStart: true });
    await cleo.rooms.join(room.roomId).then((r) => r.leave());
    const truth = () => node.call(node.adminKey, "GET", `game-session/get?roomId=${room.roomId}`);
    await waitFor(() => room.seats[1]?.state === "forfeited", "the automatic start, and that cleo left");
    expect(room.status).toBe("STARTED");
    await wantSame(room, truth);

    const open = await ada.rooms.create({ maxPlayers: 4, minPlayers: 2 });
    const seen = await bob.rooms.join(open.roomId);
    const third = await cleo.rooms.join(open.roomId);
    await waitFor(() => open.participants.length === 3, "three players");
    await open.makeHost(bob.user!.id);
    await waitFor(() => seen.host.id === bob.user!.id, "another host");
    await seen.kick(cleo.user!.id, { ban: true });
    await expect(cleo.rooms.join(open.roomId)).rejects.toMatchObject({ code: "banned", status: 403 });
    await seen.leave();
    await waitFor(() => third.version === open.version && open.host.id === ada.user!.id, "the host left");
    for (const view of [open, third]) {
      await wantSame(view, () => node.call(node.adminKey, "GET", `game-session/get?roomId=${open.roomId}`));
    }
    await expect(open.start()).rejects.toMatchObject({ code: "not_enough_players" });
  }, 60_000);

  it("comes back after its connections were cut, and misses nothing", async () => {
    const [ada, bob] = [as("ada"), as("bob")];
    await Promise.all([ada.ready, bob.ready]);
    const room = await ada.rooms.create({ maxPlayers: 2 });
    const heard: number[] = [];
    const resynced: unknown[] = [];
    let changes = 0; // of the seats; the connections of ada are events too
    for (const type of ["joined", "left"] as const) room.on(type, () => changes++);
    room.on("change", (e) => heard.push(e.seq!));
    room.on("resynced", (e) => resynced.push(e));
    const first = room.seq;
    const token = node.tokens.bob;
    for (let n = 0; n < 6; n++) {
      if (n % 2 === 0) {
        relay.refuse = true;
        relay.cut();
        await waitFor(() => ada.state === "reconnecting", "the connection is lost");
      }
      await node.call(token, "POST", n % 2 ? "game-session/leave" : "game-session/join", { roomId: room.roomId });
      relay.refuse = false;
      if (n % 2) await waitFor(() => changes === n + 1, "events");
    }
    expect(heard).toEqual(heard.map((_, n) => first + 1 + n));
    expect(resynced).toEqual([]);
  }, 90_000);

  it("asks for all its rooms by one message when it comes back, and misses nothing of any", async () => {
    const asked: any[] = [];
    let limits: any;
    class Recorder extends WebSocket {
      constructor(address: string) {
        super(address);
        this.addEventListener("message", ({ data }) => {
          const { type, data: hello } = JSON.parse(String(data));
          if (type === "hello") limits = hello.limits;
        });
      }

      override send(text: any) {
        const { type, data } = JSON.parse(text);
        if (type === "room.subscribe") asked.push(data.rooms);
        super.send(text);
      }
    }
    const guest = open({ username: "Rooms", WebSocket: Recorder });
    await guest.ready;
    const rooms: Room[] = [];
    for (let n = 0; n < 16; n++) rooms.push(await guest.rooms.create({ maxPlayers: 2 }));
    expect(limits.roomsPerSubscribe).toBeGreaterThanOrEqual(rooms.length);
    await waitFor(() => rooms.every((room) => room.presence?.[0].connected), "the guest is connected to each");
    const heard: string[] = [];
    rooms.forEach((room, n) => {
      for (const type of ["joined", "resynced"] as const) room.on(type, () => heard.push(`${n} ${type}`));
    });
    relay.refuse = true;
    relay.cut();
    await waitFor(() => guest.state === "reconnecting", "the connection is lost");
    const starts = rooms.map(({ roomId, position }) => ({ roomId, after: position }));
    for (const { roomId } of rooms) await node.call(node.tokens.bob, "POST", "game-session/join", { roomId });
    asked.length = 0;
    relay.refuse = false;
    await waitFor(() => heard.length >= rooms.length, "what happened meanwhile");
    expect(asked).toEqual([starts]);
    expect(heard.sort()).toEqual(rooms.map((_, n) => `${n} joined`).sort());
    for (const room of rooms) expect(room.participants).toHaveLength(2);
    for (const room of rooms) await room.cancel();
  }, 60_000);

  it("goes on in the other rooms when it may no longer see one", async () => {
    const [host, friend] = [open({ username: "Host" }), open({ username: "Friend" })];
    await Promise.all([host.ready, friend.ready]);
    await host.friends.add(friend.user!.id);
    await friend.friends.add(host.user!.id);
    const secret = await host.rooms.create({ maxPlayers: 2, visibility: "private" });
    const common = await host.rooms.create({ maxPlayers: 2 });
    await friend.rooms.get(secret.roomId); // followed, without a seat
    const seen = await friend.rooms.join(common.roomId);
    await waitFor(() => seen.presence?.length === 2 && seen.presence.every((p) => p.connected), "both are connected");
    const token = await host.account.token();
    relay.refuse = true;
    relay.cut();
    await waitFor(() => friend.state === "reconnecting", "the connection is lost");
    await node.call(token, "DELETE", `friends/${friend.user!.id}`);
    relay.refuse = false;
    await waitFor(() => failures.length > 0, "the error of the private room");
    expect(failures.splice(0)).toMatchObject([{ name: "ParlorError", code: "room_not_found", status: 404 }]);
    await waitFor(() => host.state === "online", "the host is back");
    const ready = seen.once("ready");
    await common.setReady();
    expect(await ready).toMatchObject({ userId: host.user!.id, ready: true });
  }, 60_000);

  it("shows who is connected in the order of the participants, field by field", async () => {
    const host = open({ username: "Host" });
    const room = await host.rooms.create({ maxPlayers: 4 });
    const ids = (list: any[] | undefined, key: "id" | "userId") => list?.map((x) => x[key]);
    const disorder: unknown[] = [];
    room.on("change", () => {
      const [presence, participants] = [ids(room.presence, "userId"), ids(room.participants, "id")];
      if (presence && presence.join() !== participants!.join()) disorder.push([presence, participants]);
    });
    const isHere = (id: number) => room.presence?.find((p) => p.userId === id)?.connected;
    const want = (condition: () => boolean | undefined, what: string) => waitFor(() => !!condition(), what);
    const truth = () => node.call(node.adminKey, "GET", `game-session/get?roomId=${room.roomId}`);
    const players = [open({ username: "Second" }), open({ username: "Third" })];
    await Promise.all(players.map((p) => p.ready));
    const [second, third] = players.map((p) => p.user!.id);
    for (const player of players) { // takes a seat, and follows the room only later
      await node.call(await player.account.token(), "POST", "game-session/join", { roomId: room.roomId });
    }
    await players[1].rooms.join(room.roomId);
    await want(() => isHere(third), "the last one comes first");
    expect(ids(room.presence, "userId")).toEqual([host.user!.id, second, third]);
    const seen = await players[0].rooms.join(room.roomId);
    await want(() => isHere(second), "the second comes");
    await wantSame(room, truth);
    await seen.leave();
    await waitFor(() => room.participants.length === 2, "the second leaves");
    await wantSame(room, truth);
    await players[0].rooms.join(room.roomId);
    await want(() => isHere(second), "the second takes another seat");
    expect(ids(room.presence, "userId")).toEqual([host.user!.id, third, second]);
    players[1].close();
    await want(() => isHere(third) === false, "the connection of the third is lost");
    expect(room.presence![1]).toMatchObject({ userId: third, graceUntil: expect.any(String) });
    await wantSame(room, truth);
    await wantSame(seen, truth);
    expect(disorder).toEqual([]);
  }, 60_000);

  it("buys, saves, and keeps friends and the profile", async () => {
    const ada = as("ada");
    await ada.ready;
    const { items } = await ada.store.assets();
    const lantern = items.find((a) => a.name === "Lantern")!;
    await expect(ada.store.buy(lantern.id, { expectedPrice: "1" })).rejects.toMatchObject({ code: "price_changed" });
    const bought = await ada.store.buy(lantern.id, { expectedPrice: lantern.price });
    expect(ada.wallet.format(bought.totalAmount, bought.entryToken.tokenId)).toBe("12.99 Gold");
    await expect(ada.store.buy(lantern.id)).rejects.toMatchObject({ code: "already_owned" });
    expect((await ada.store.owned()).items.map((o) => o.owned)).toEqual([1]);
    expect(await ada.store.pending()).toEqual([]);
    expect((await ada.wallet.ledger({ limit: 1 })).items).toHaveLength(1);
    const bounds = await ada.wallet.limits({ tokenId: "GOLD", maxStake: "2.5", maxOpenRooms: 8 });
    expect(bounds).toMatchObject({ maxStake: 2.5, maxStakeAmount: "250", maxOpenRooms: 8, pending: [] });
    const looser = await ada.wallet.limits({ tokenId: "GOLD", maxStake: null });
    expect(looser).toMatchObject({ maxStake: 2.5, pending: [{ limit: "maxStake", value: null }] });
    const all = await ada.wallet.limits();
    expect(all.excludedUntil).toBe(null);
    expect(all.items.find(({ tokenId }) => tokenId === "GOLD")).toEqual(looser);
    const tooMuch = ada.rooms.create({ maxPlayers: 2, entryTokenId: 1, roomEntry: 5 });
    await expect(tooMuch).rejects.toMatchObject({ code: "stake_limit", status: 409 });

    expect(await ada.progress.load("main")).toBe(null);
    expect((await ada.progress.save("main", { level: 1 })).version).toBe(1);
    expect((await ada.progress.save("main", { level: 2 })).version).toBe(2);
    expect(await ada.progress.load("main")).toMatchObject({ version: 2, state: { level: 2 } });
    expect((await ada.progress.history("main")).map((r) => r.version)).toEqual([2, 1]);
    expect((await ada.progress.restore("main", 1)).version).toBe(3);
    expect((await ada.progress.list()).map((s) => s.slot)).toEqual(["main"]);
    const other = as("ada");
    await expect(other.progress.save("main", { level: 9 })).rejects.toMatchObject({
      code: "version_conflict", data: { mine: { level: 9 }, theirs: { level: 1 }, version: 3 },
    });

    const bob = as("bob");
    await bob.ready;
    expect(await ada.friends.add(bob.user!.id)).toMatchObject({ state: "outgoing" });
    expect((await bob.friends.list()).items).toMatchObject([{ id: ada.user!.id, state: "incoming" }]);
    await ada.friends.remove(bob.user!.id);
    await ada.account.rename("Ada L");
    expect(ada.user!.username).toBe("Ada L");
    expect(await ada.me()).toMatchObject({ id: ada.user!.id, username: "Ada L", gameId: 1, kind: expect.any(String) });
    await ada.account.rename("ada");
    const problem = { code: "invalid_request", data: { errors: expect.any(Array) } };
    await expect(ada.account.rename("")).rejects.toMatchObject(problem);
  }, 60_000);

  it("quick joins a room that fits, else opens one", async () => {
    const [ada, bob] = [as("ada"), as("bob")];
    const input = { maxPlayers: 7, metadata: { mode: "quick" } };
    const room = await ada.rooms.quick(input);
    const same = await bob.rooms.quick(input);
    expect(same.roomId).toBe(room.roomId);
    expect((await bob.rooms.mine()).map((r) => r.roomId)).toContain(room.roomId);
    expect((await bob.rooms.mine()).find((r) => r.roomId === room.roomId)).toBe(same);
    const other = await bob.rooms.quick({ maxPlayers: 6 });
    expect(other.roomId).not.toBe(room.roomId);
  }, 60_000);

  it("follows more rooms than a connection may, the newest", async () => {
    const ada = open({ username: "Many" });
    await ada.ready;
    const rooms = [];
    for (let n = 0; n < 18; n++) {
      const room = await ada.rooms.create({ maxPlayers: 2 });
      rooms.push(room);
      if (n < 4) await room.cancel();
    }
    const last = rooms[17];
    await last.setReady();
    expect(last.seats[0].ready).toBe(true);
    await rooms[4].setReady();
    expect(rooms[4].seats[0].ready).toBe(true);
  }, 60_000);

  it("a guest comes back, signs out, and an ended session signs in again", async () => {
    const storage = new MemoryStorage();
    const guest = open({ storage, username: "Guest" });
    await guest.ready;
    const user = guest.user!;
    expect(user.username).toBe("Guest");
    expect(Math.abs(guest.time() - Date.now())).toBeLessThan(2000);
    const states: string[] = [];
    guest.on("state", (s) => states.push(s));
    await node.call(guestToken(storage), "POST", "auth/logout");
    await waitFor(() => states.join() === "reconnecting,online", "signing in again");
    expect(guest.user).toEqual(user);
    await guest.account.signOut();
    const next = open({ storage });
    await next.ready;
    expect(next.user!.id).not.toBe(user.id);
    await next.account.remove();
    expect(next.state).toBe("closed");
  }, 60_000);

  it("awaits init, and gives one client for a game", async () => {
    const o = { gameId: 1, baseUrl: `${node.url}/`, storage: false as const, WebSocket };
    const client = await init(o);
    clients.add(client);
    expect(client.state).toBe("online");
    expect(init(o)).toBe(client);
    expect(await client.ready).toBe(client);
    client.close();
    const next = init(o);
    clients.add(next);
    expect(next).not.toBe(client);
    await expect(init({ ...o, gameId: 999 })).rejects.toMatchObject({ code: "game_not_found" });
  }, 60_000);
});

const guestToken = (storage: MemoryStorage) =>
  JSON.parse([...storage.map].find(([key]) => /:1$/.test(key))![1]).accessToken;

describe("a game's server", () => {
  const servers: GameServer[] = [];
  const errors: unknown[] = [];
  let gameId: number;
  let key: string;

  beforeAll(async () => { // game 1 has the server of the demo
    const made = await node.call(node.adminKey, "POST", "admin/games", { name: "Served", settings: { feed: true } });
    gameId = made.game.id;
    key = made.serverKey;
  });

  const player = (username: string) => open({ gameId, username });

  /** Cuts every connection, and waits until they are back. */
  async function cutAll(...all: { state: string }[]) {
    relay.cut();
    await waitFor(() => all.every(({ state }) => state === "reconnecting"), "the loss to be noticed");
    await waitFor(() => all.every(({ state }) => state === "online"), "all to come back");
  }

  /** Calls the server once the nodes know that it is there, a second after it has come at the latest. */
  async function callAgain(room: Room, op: string, payload: unknown, o?: AskOptions): Promise<any> {
    for (;;) {
      try {
        return await room.call(op, payload, o);
      } catch (e: any) {
        if (e.code !== "no_server") throw e;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
  }

  afterEach(async () => {
    await Promise.all(servers.splice(0).map((one) => one.close()));
    expect(errors.splice(0)).toEqual([]);
  });

  function serve(): GameServer {
    const one = connectServer({ url: relay.url, key, WebSocket });
    one.on("error", (e) => errors.push(e));
    servers.push(one);
    return one;
  }

  it("hears each room once, is asked by players, and ends rooms, while its connection is cut", async () => {
    const server = serve();
    const heard: string[] = [];
    for (const type of ["room.created", "room.joined", "room.started", "room.finished"] as const) {
      server.on(type, ({ roomId }) => { heard.push(`${type} ${roomId}`); });
    }
    server.on("room.started", ({ roomId }) => server.setState(roomId, { moves: 0 }));
    server.onCall("move", async ({ roomId, from, payload }) => {
      const room = await server.room(roomId);
      const moves = Number(room.shared?.value.moves) + payload.by;
      if (payload.by < 1) throw new GameError("too_few", "One at least.");
      await server.setState(roomId, { moves }, { version: room.shared!.version });
      if (moves === 3) {
        await server.finish(roomId, room.seats.map(({ userId }) => ({ userId, place: userId === from ? 1 : 2 })));
      }
      return { moves };
    });
    await server.ready;

    const [ada, bob] = [player("Ada"), player("Bob")];
    await Promise.all([ada.ready, bob.ready]);
    const rooms: Room[] = [];
    for (let n = 0; n < 3; n++) {
      const room = await ada.rooms.create({ maxPlayers: 2, autoStart: true, settlement: "server" });
      const other = await bob.rooms.join(room.roomId);
      rooms.push(room);
      if (!("moves" in room.shared.value)) await room.once("state");
      expect(await callAgain(other, "move", { by: 1 })).toEqual({ moves: 1 });
      await expect(room.call("move", { by: 0 })).rejects.toMatchObject({
        code: "game_error", status: 422, data: { gameCode: "too_few" }, detail: "One at least.",
      });
      await cutAll(server, ada, bob);
      expect(await callAgain(room, "move", { by: 1 })).toEqual({ moves: 2 });
      expect(await other.call("move", { by: 1 })).toEqual({ moves: 3 });
      await waitFor(() => room.status === "FINISHED", "the end of the room");
    }
    const expected = rooms.flatMap(({ roomId }) =>
      ["created", "joined", "started", "finished"].map((type) => `room.${type} ${roomId}`));
    await waitFor(() => heard.length >= expected.length, "all events");
    expect(heard).toEqual(expected);
  });

  it("sends messages to a room and to a player", async () => {
    const server = serve();
    const ada = player("Ada");
    await Promise.all([server.ready, ada.ready]);
    const room = await ada.rooms.create({ maxPlayers: 2 });
    // At most once: a message is lost until the socket follows the room, or the player's own events.
    const repeat = async (send: () => Promise<unknown>, heard: unknown[]) => {
      for (; !heard.length; await new Promise((resolve) => setTimeout(resolve, 100))) await send();
      return heard[0];
    };
    const inRoom: unknown[] = [];
    room.on("message", (e) => { inRoom.push(e); });
    const hint = await repeat(() => server.send(room, "hint", { x: 1 }), inRoom);
    expect(hint).toMatchObject({ from: null, op: "hint", payload: { x: 1 } });
    const gifts: unknown[] = [];
    ada.on("message", (e) => { gifts.push(e); });
    const gift = await repeat(() => server.message(ada.user!.id, "gift", { gold: 1 }), gifts);
    expect(gift).toEqual({ op: "gift", payload: { gold: 1 } });
    await server.cancel(room);
    await waitFor(() => room.status === "CANCELLED", "the end of the room");
  });

  it("is missed at once, and finds its rooms when it comes", async () => {
    const [ada, bob] = [player("Ada"), player("Bob")];
    await Promise.all([ada.ready, bob.ready]);
    const room = await ada.rooms.create({ maxPlayers: 2, autoStart: true, settlement: "server", visibility: "private" });
    await expect(room.call("move", {})).rejects.toMatchObject({ code: "no_server", status: 503, retryable: true });
    const server = serve();
    const found: string[] = [];
    server.onRoom(({ roomId, status }) => { if (status === "CREATED") found.push(roomId); });
    server.onCall("slow", () => new Promise((resolve) => { setTimeout(resolve, 300); }));
    await waitFor(() => found.includes(room.roomId), "the room");
    await expect(callAgain(room, "slow", {}, { timeoutMs: 100 })).rejects.toMatchObject({ code: "server_timeout", status: 504 });
    await server.cancel(room);
  });

  it("goes on at its positions after a restart", async () => {
    let saved: Positions | undefined;
    const positions = { load: () => saved, save(next: Positions) { saved = next; } };
    const heard: string[] = [];
    const start = async () => {
      const one = connectServer({ url: relay.url, key, WebSocket, positions });
      servers.push(one);
      one.on("error", (e) => errors.push(e));
      one.on("room.cancelled", ({ roomId }) => { heard.push(roomId); });
      await one.ready;
      return one;
    };
    await (await start()).close();
    const ada = player("Ada");
    await ada.ready;
    const rooms = [await ada.rooms.create({ maxPlayers: 2 }), await ada.rooms.create({ maxPlayers: 2 })];
    await rooms[0].cancel();
    const second = await start();
    await rooms[1].cancel();
    await waitFor(() => heard.length === 2, "both rooms");
    await second.close();
    const third = await start();
    const last = await ada.rooms.create({ maxPlayers: 2 });
    await last.cancel();
    await waitFor(() => heard.length === 3, "the last room");
    expect(heard).toEqual([...rooms, last].map(({ roomId }) => roomId));
    await third.close();
  });
});
