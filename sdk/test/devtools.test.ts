// The devtools' hold on the network, with a service that it cannot tell from a real one.
import { describe, expect, it, vi } from "vitest";
import { createBinaryLane } from "../src/binary.js";
import { watchNetwork } from "../src/devtools/network.js";
import { hideSecrets, hideSecretsInQuery } from "../src/devtools/secrets.js";
import { writeScript } from "../src/devtools/script.js";
import type { DebugCall } from "../src/devtools/types.js";
import type { Options } from "../src/types.js";
import { FakeService } from "./fake_service.js";
import { openTab, run, settle, useFakeClock } from "./tab.js";

useFakeClock();

async function openWatched(wrap = (Socket: any) => Socket) {
  const service = new FakeService();
  const options: Options = { gameId: "1", username: "Ann", fetch: service.fetch, WebSocket: wrap(service.WebSocket) };
  const network = watchNetwork(options);
  const client = openTab(service, options);
  await settle(client.ready);
  const room = await settle(client.rooms.create({ maxPlayers: 4 }));
  await run(100);
  const write = () => writeScript({ ...network, gameId: 1, user: client.user });
  return { service, network, client, room, write, fake: service.rooms.get(room.roomId)! };
}

describe("the devtools", () => {
  it("show each call with its ids and its duration, and no secret", async () => {
    const { service, network, client } = await openWatched();
    const call = network.calls.find(({ path }) => path.endsWith("create"))!;
    const key = service.calls.find(({ path }) => path.endsWith("create"))!.key;
    expect(call).toMatchObject({
      kind: "http", method: "POST", path: "/api/v1/game-session/create", status: 201, idempotencyKey: key,
      request: { maxPlayers: 4 }, response: { maxPlayers: 4 }, sentBytes: 16,
    });
    expect(call.ms).toBeGreaterThanOrEqual(10);
    expect(network.calls.find(({ path }) => path === "room.subscribe")).toMatchObject({ kind: "socket", id: expect.any(String) });
    await expect(settle(client.rooms.get("room-0"))).rejects.toMatchObject({ code: "room_not_found" });
    expect(network.calls.at(-1)).toMatchObject({ status: 404, code: "room_not_found", requestId: "r" });
    const shown = JSON.stringify([network.calls, network.events]);
    for (const secret of [...service.seenSecrets.keys(), await client.account.token()]) expect(shown).not.toContain(secret);
    expect(shown).not.toMatch(/refresh-\d|ticket-\d/);
  });

  it("hide what signs in or opens something, in bodies and in addresses", () => {
    const jwt = "eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl";
    const secrets = [
      "accessToken", "refreshToken", "externalToken", "idToken", "token", "deviceSecret", "ticket", "password", "Authorization",
      "serverKey", "adminKey", "apiKey",
    ];
    for (const name of secrets) {
      expect(hideSecrets({ list: [{ [name]: "s3cret" }] }), name).toEqual({ list: [{ [name]: "…" }] });
      expect(hideSecretsInQuery(`/api/v1/ws?a=1&${name}=s3cret#x`), name).toBe(`/api/v1/ws?a=1&${name}=…#x`);
    }
    expect(hideSecrets([jwt, { said: jwt }])).toEqual(["…", { said: "…" }]);
    const shown = { tokenId: "GOLD", entryToken: { id: 1, tokenId: "GOLD" }, code: "K7QX2M", position: "2-n", key: "a.b.c" };
    expect(hideSecrets(shown)).toEqual(shown);
    expect(hideSecretsInQuery("/list?gameId=1&x=100%")).toBe("/list?gameId=1&x=100%");
  });

  it("keep no long body, and no secret of an address", async () => {
    const fetch = async () => new Response(JSON.stringify({ text: "x".repeat(70_000) }));
    const network = watchNetwork({ fetch, WebSocket: class {} });
    await settle(network.fetch("http://a.example/api/v1/me?ticket=s3cret"));
    await run(0);
    expect(network.calls).toMatchObject([{ path: "/api/v1/me?ticket=…", response: "(70011 characters)", receivedBytes: 70_011 }]);
  });

  it("show the round trip, each event and the position of each room", async () => {
    const { service, network, room, fake } = await openWatched();
    service.join(fake, service.newUser("Bob"));
    await run(100);
    expect(network.rooms.get(room.roomId)).toMatchObject({ seq: 2, position: "2-n" });
    expect(network.events.at(-1)).toMatchObject({ name: "room.joined", roomId: room.roomId, seq: 2, data: { user: { username: "Bob" } } });
    expect(network.roundTrips.at(-1)).toBeGreaterThanOrEqual(10);
  });

  it("keep the last 500 calls and events", async () => {
    const { service, network, client, room, fake } = await openWatched();
    for (let n = 0; n < 600; n++) {
      service.tell(fake, "room.message", { from: 9, op: "n", payload: n });
      if (n % 20 === 0) await run(2000);
      room.send("n", n);
    }
    await run(2000);
    expect([network.calls.length, network.events.length]).toEqual([500, 500]);
    expect(network.events.at(-1)!.data).toMatchObject({ payload: 599 });
    expect(client.state).toBe("online");
  });

  it("add latency and keep the order when it ends", async () => {
    const { service, network, room, fake } = await openWatched();
    const heard: number[] = [];
    room.on("message", (e) => heard.push(e.payload));
    const tell = (payload: number) => service.tell(fake, "room.message", { from: 9, op: "n", payload });
    network.latencyMs = 200;
    tell(1);
    await run(100);
    expect(heard).toEqual([]);
    network.latencyMs = 0;
    tell(2);
    await run(200);
    expect(heard).toEqual([1, 2]);
  });

  it("lose events, which the room then fetches", async () => {
    const { service, network, room, fake } = await openWatched();
    network.loss = 1;
    service.join(fake, service.newUser("Bob"));
    await run(100);
    expect(network.lost).toBe(1);
    expect(network.events.at(-1)).toMatchObject({ lost: true });
    expect(room.participants).toHaveLength(1);
    network.loss = 0;
    service.join(fake, service.newUser("Cleo"));
    await run(100);
    expect(room.participants).toHaveLength(3);
  });

  it("lose no event of the player", async () => {
    const { service, network, client } = await openWatched();
    network.loss = 1;
    const heard = vi.fn();
    client.on("balance", heard);
    service.tellUser("user.balance", 1, { ...service.balance(), reason: "grant" });
    await run(100);
    expect([network.lost, heard.mock.calls.length]).toEqual([0, 1]);
  });

  it("lose the reply to a call that the cut caught on its way", async () => {
    const { service, network, client } = await openWatched();
    const states: string[] = [];
    client.on("state", (state) => states.push(state));
    const created = client.rooms.create({ maxPlayers: 4 });
    await run(5); // it has arrived
    network.cut();
    network.resume();
    await settle(created);
    const tries = network.calls.filter(({ path }) => path.endsWith("create")).slice(1);
    expect(tries).toMatchObject([{ failure: "the network was cut before the reply came" }, { status: 201 }]);
    expect(tries[1].idempotencyKey).toBe(tries[0].idempotencyKey);
    expect(service.rooms.size).toBe(2);
  });

  it("show a room's status, and its position while it is followed", async () => {
    const { network, room } = await openWatched();
    await settle(room.start());
    await run(100);
    expect(network.rooms.get(room.roomId)).toMatchObject({ status: "STARTED", seq: 2 });
    room.unwatch();
    expect(network.rooms.get(room.roomId)!.seq).toBeUndefined();
  });

  it("drop the connection, which comes back", async () => {
    const { network, client } = await openWatched();
    const states: string[] = [];
    client.on("state", (state) => states.push(state));
    network.disconnect();
    await run(2000);
    expect(states).toEqual(["reconnecting", "online"]);
  });

  it("cut the network until it is resumed: what happened meanwhile comes once", async () => {
    const { service, network, client, room, fake } = await openWatched();
    const heard: number[] = [];
    room.on("joined", (e) => heard.push(e.seq!));
    const lost = client.wallet.balances().catch((e) => e.code);
    network.cut();
    service.join(fake, service.newUser("Bob"));
    await run(5000);
    expect([client.state, heard]).toEqual(["reconnecting", []]);
    expect(service.sockets.size).toBe(0);
    expect(network.calls.filter(({ failure }) => failure === "the network is cut").length).toBeGreaterThan(1);
    network.resume();
    await run(20_000); // the longest time between two attempts
    expect([client.state, heard]).toEqual(["online", [2]]);
    expect(await lost).toBe("offline");
  });

  it("watch a connection that also carries bytes", async () => {
    const { service, network, client, fake } = await openWatched((WebSocket) => createBinaryLane({ WebSocket }).WebSocket);
    network.disconnect();
    await run(2000);
    service.join(fake, service.newUser("Bob"));
    await run(100);
    expect([client.state, network.events.at(-1)!.name]).toEqual(["online", "room.joined"]);
  });

  it("say that the browser is offline", async () => {
    vi.stubGlobal("navigator", {});
    const { network, client } = await openWatched();
    network.cut({ offline: true });
    expect(navigator.onLine).toBe(false);
    await run(100);
    expect(client.state).toBe("offline");
    network.resume();
    expect(navigator.onLine).not.toBe(false);
    await run(20_000);
    expect(client.state).toBe("online");
    vi.unstubAllGlobals();
  });

  it("write a test: ids by their names, what was repeated once, others as guests of their own", async () => {
    const { service, client, room, write, fake } = await openWatched();
    service.join(fake, service.newUser("Bob"));
    await run(100);
    service.fault = (() => {
      let isFirst = true;
      return (_: string, path: string) => (path === "game-session/start" && isFirst ? (isFirst = false, "reply") : undefined);
    })();
    await settle(room.start());
    await expect(settle(client.rooms.join("room-0"))).rejects.toMatchObject({ code: "room_not_found" });
    const text = write();
    expect(text.slice(text.indexOf("test(\""))).toBe(`test("what the page did", async (t) => {
  const player1 = process.env.PARLOR_TOKEN ? await me(process.env.PARLOR_TOKEN) : await signIn("Ann");
  const room1 = await call(player1, "POST", "game-session/create", { maxPlayers: 4 }, 201);
  const player2 = await signIn("Bob");
  await call(player2, "POST", "game-session/join", { roomId: room1.roomId }, 200);
  await call(player1, "POST", "game-session/start", { roomId: room1.roomId }, 200);
  await call(player1, "POST", "game-session/join", { roomId: "room-0" }, 404, "room_not_found");
});
`);
    expect(text).not.toMatch(/eyJ|refresh-/);
  });

  it("write a test of a room that another player made, up to its result, and of a poll once", () => {
    const [bob, ann, cleo] = [{ id: 4, username: "Bob" }, { id: 5, username: "Ann" }, { id: 6, username: "Cleo" }];
    const room = {
      roomId: "r-1", code: "K7QX2M", status: "CREATED", creator: bob, participants: [bob, cleo], maxPlayers: 3, minPlayers: 2,
      metadata: {}, settlement: "server", entryToken: { id: 1, tokenId: "GOLD" }, roomEntry: 2.5,
    };
    const list = { method: "GET", path: "/api/v1/game-session/list?limit=4", response: { items: [room] } };
    const calls = [
      { method: "POST", path: "/api/v1/auth/guest", status: 201 }, list, list,
      { method: "GET", path: "/api/v1/game-session/get?code=K7QX2M", response: room },
      { method: "POST", path: "/api/v1/game-session/join", idempotencyKey: "k", failure: "the network is cut" },
      { method: "POST", path: "/api/v1/game-session/join", idempotencyKey: "k", request: { roomId: "r-1" }, response: room },
      { n: 20, method: "POST", path: "/api/v1/friends/4", idempotencyKey: "l" },
      { n: 21, method: "POST", path: "https://elsewhere.example/moves" },
      { n: 22, method: "", kind: "socket", path: "room.send" },
    ].map((call, n) => ({ n, at: 0, kind: "http", sentBytes: 0, status: "failure" in call ? undefined : 200, ...call })) as DebugCall[];
    const events = ([
      ["room.joined", 2, { user: ann }], ["room.ready", 3, { userId: 4, ready: true }], ["room.started", 4, { by: "host" }],
      ["room.started", 4, { by: "host" }], ["room.finished", 5, { results: [{ userId: 5, place: 1 }, { userId: 4, place: 2 }] }],
    ] as [string, number, object][]).map(([name, seq, data], i) => ({ n: 10 + i, at: 0, name, roomId: "r-1", seq, bytes: 0, data }));
    const text = writeScript({ base: "http://a.example", gameId: "3", user: ann, calls, events });
    expect(text.slice(text.indexOf("test(\""))).toBe(`test("what the page did", async (t) => {
  const player1 = process.env.PARLOR_TOKEN ? await me(process.env.PARLOR_TOKEN) : await signIn("Ann");
  await call(player1, "GET", "game-session/list?limit=4", undefined, 200);
  const player2 = await signIn("Bob");
  const room1 = await call(player2, "POST", "game-session/create", { maxPlayers: 3, minPlayers: 2, metadata: {}, settlement: "server", entryTokenId: 1, roomEntry: "2.5" }, 201);
  const player3 = await signIn("Cleo");
  await call(player3, "POST", "game-session/join", { roomId: room1.roomId }, 200);
  await call(player1, "GET", \`game-session/get?code=\${room1.code}\`, undefined, 200);
  await call(player1, "POST", "game-session/join", { roomId: room1.roomId }, 200);
  await call(player2, "POST", "game-session/ready", { roomId: room1.roomId, ready: true }, 200);
  await call(player2, "POST", "game-session/start", { roomId: room1.roomId }, 200);
  if (!serverKey) return t.diagnostic("stopped here: PARLOR_SERVER_KEY is not set");
  await call({ accessToken: serverKey }, "POST", "game-session/finish", { roomId: room1.roomId, results: [{ userId: player1.user.id, place: 1 }, { userId: player2.user.id, place: 2 }] }, 200);
  await call(player1, "POST", \`friends/\${player2.user.id}\`, undefined, 200);
});
`);
    expect(text).toContain("1 messages over the socket, and 4 calls");
    // Numbers of the game are no players, whatever they are, and any key is one of JavaScript.
    const metadata = { 1: 1, true: true, level: 5, "a b": null, winner: 5 };
    const made = { ...calls[3], method: "POST", path: "/api/v1/game-session/create", request: { maxPlayers: 2, metadata } };
    const others = [401, 429, 503].map((status) => ({ ...calls[6], idempotencyKey: `${status}`, status }));
    const lost = { ...events[0], lost: true as const };
    const own = writeScript({ base: "http://a.example", gameId: 3, user: ann, calls: [made, ...others] as DebugCall[], events: [lost] });
    expect(own).toContain('metadata: { "1": 1, true: true, level: 5, "a b": null, winner: player1.user.id } }, 200);');
    expect(own).not.toMatch(/friends|join/);
    // After a reload the player has a room that the recording does not make.
    const mine = { ...room, creator: ann, participants: [ann, bob], status: "STARTED" };
    const later = calls.slice(3, 6).map((call) => ({ ...call, response: mine })).filter(({ path }) => !path.endsWith("join"));
    const after = writeScript({ base: "http://a.example", gameId: 3, user: ann, calls: later, events: [] });
    expect([...after.matchAll(/\(player(\d), "POST", "game-session\/(\w+)/g)].map(([, who, verb]) => `${who} ${verb}`))
      .toEqual(["1 create", "2 join", "1 start"]);
  });

  it("comes before the connection, and the game goes on without it", async () => {
    const script: any = {};
    const append = vi.fn();
    vi.stubGlobal("document", Object.assign(new EventTarget(), { createElement: () => script, head: { append } }));
    const show = vi.fn();
    vi.stubGlobal("parlorDebug", show);
    try {
      for (const outcome of ["onload", "onerror"]) {
        if (outcome === "onerror") vi.stubGlobal("parlorDebug", undefined);
        const service = new FakeService();
        const client = openTab(service, { debug: true });
        await run(1000);
        expect([append.mock.lastCall, script.src]).toEqual([[script], `${service.base}/sdk/debug.v1.js`]);
        expect(service.calls).toEqual([]);
        script[outcome]();
        await settle(client.ready);
        expect(show).toHaveBeenCalledTimes(1);
      }
    } finally {
      vi.unstubAllGlobals();
    }
  });
});
