import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FakeService, type FakeRoom } from "./fake_service.js";
import { openTab, run, settle, useFakeClock, closeTabs } from "./tab.js";

useFakeClock();

/** What a step of the service's life is, and what a connection hears of it. */
const delivery = fc.constantFrom([1], [1], [1], [0], [2], [1, -1], [-2, 1], [0, -1]);
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({
    kind: fc.constantFrom("join", "leave", "ready", "connect", "disconnect", "turn" as const), n: fc.nat(5), delivery,
  }) },
  { weight: 2, arbitrary: fc.record({
    kind: fc.constant("close" as const), n: fc.constantFrom(1001, 1006, 1012, 4001, 4008, 4009),
  }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("forget" as const) }) },
  { weight: 1, arbitrary: fc.record({
    kind: fc.constant("loseReply" as const), when: fc.constantFrom("before", "after" as const),
  }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("loseHttp" as const), n: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("undo" as const), n: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("wait" as const), n: fc.integer({ min: 1, max: 3000 }) }) },
);

function happen(service: FakeService, room: FakeRoom, kind: string, n: number, deliver: number[]) {
  const { participants } = room.state;
  const one = participants[n % participants.length];
  const others = participants.slice(1);
  if (kind === "join") service.join(room, service.newUser(), deliver);
  else if (kind === "leave" && others.length) service.leave(room, others[n % others.length].id, deliver);
  else if (kind === "connect") service.connect(room, one.id, undefined, deliver);
  else if (kind === "disconnect") service.connect(room, one.id, service.time(), deliver);
  else if (kind === "turn") service.giveTurn(room, one.id, deliver);
  else service.ready(room, room.state.seats[0].userId, n % 2 > 0, deliver);
}

/** What a page can show of a room; null and no turn are the same. */
function fieldsOf(room: any) {
  const { turn, ...fields } = JSON.parse(typeof room === "string" ? room : JSON.stringify(room));
  return { ...fields, turn: turn ?? null };
}

describe("delivery", () => {
  it("never loses, never doubles and keeps the order, whatever the connection does", async () => {
    let resyncs = 0;
    let events = 0;
    await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const service = new FakeService();
      const client = openTab(service);
      const room = await settle(client.rooms.create({ maxPlayers: 100 }));
      await settle(client.ready);
      const fake = service.rooms.get(room.roomId)!;
      const heard: { type: string; seq: number; position?: string; view: string }[] = [];
      for (const type of ["joined", "left", "ready", "connected", "disconnected", "turn", "resynced"] as const) {
        room.on(type, (e: any) => {
          heard.push({ type: e.type, seq: e.seq, position: room.position, view: JSON.stringify(room) });
        });
      }
      const first = { seq: room.seq, position: room.position };
      for (const s of steps as any[]) {
        if (s.kind === "wait") await run(s.n);
        else if (s.kind === "close") for (const socket of [...service.sockets]) socket.end(s.n);
        else if (s.kind === "forget") fake.oldest = fake.state.seq;
        else if (s.kind === "loseReply") {
          let lost = false;
          service.loseFrame = () => {
            if (lost) return undefined;
            lost = true;
            return s.when;
          };
        } else if (s.kind === "loseHttp") {
          let left = s.n;
          service.fault = () => (left-- > 0 ? "reply" : undefined);
        } else if (s.kind === "undo") service.undo(fake, s.n);
        else happen(service, fake, s.kind, s.n, s.delivery);
      }
      service.loseFrame = () => undefined;
      service.fault = () => undefined;
      await run(40_000);
      happen(service, fake, "ready", 1, [1]); // shows a connection that it missed something
      await run(40_000);

      let last: { seq: number; position?: string } = first;
      for (const { type, seq, position, view } of heard) {
        if (type === "resynced") {
          expect(position).not.toBe(last.position); // its number is lower where events were undone
          resyncs++;
        } else {
          expect(seq).toBe(last.seq + 1);
          events++;
        }
        expect(fieldsOf(view)).toEqual(fieldsOf(fake.history.get(position!)!)); // fields first, then listeners
        last = { seq, position };
      }
      expect(heard.filter((e) => e.type === "resynced").length).toBeLessThanOrEqual(service.snapshots);
      expect(fieldsOf(room)).toEqual(fieldsOf(service.view(fake)));
      closeTabs();
    }), { numRuns: Number(process.env.RUNS ?? 150) });
    expect(events).toBeGreaterThan(100);
    expect(resyncs).toBeGreaterThan(3);
  }, 240_000);

  it("says resynced once when the past is gone", async () => {
    const service = new FakeService();
    const client = openTab(service);
    const room = await settle(client.rooms.create({ maxPlayers: 9 }));
    await settle(client.ready);
    const fake = service.rooms.get(room.roomId)!;
    const heard: string[] = [];
    room.on("resynced", (e) => heard.push(`${e.seq} ${e.room === room}`));
    room.on("joined", () => heard.push("joined"));
    for (const socket of service.sockets) socket.end(1006);
    service.join(fake, service.newUser());
    service.join(fake, service.newUser());
    fake.oldest = fake.state.seq;
    await run(20_000);
    for (const socket of service.sockets) socket.end(1006);
    await run(20_000);
    expect(heard).toEqual(["3 true"]);
    expect(room.participants).toHaveLength(3);
  });

  it("shows a snapshot after a failover that lost events, whatever its number", async () => {
    const service = new FakeService();
    const client = openTab(service);
    const room = await settle(client.rooms.create({ maxPlayers: 9 }));
    await settle(client.ready);
    await run(1000);
    const fake = service.rooms.get(room.roomId)!;
    const heard: string[] = [];
    for (const type of ["joined", "ready", "resynced"] as const) room.on(type, (e) => heard.push(`${type} ${e.seq}`));
    service.join(fake, service.newUser());
    service.join(fake, service.newUser());
    await run(1000);
    service.undo(fake, 2); // the snapshot has a position that was heard before
    service.ready(fake, room.participants[0].id, true);
    await run(1000);
    service.ready(fake, room.participants[0].id, false);
    service.undo(fake, 1);
    service.join(fake, service.newUser());
    await run(1000);
    expect(heard).toEqual(["joined 2", "joined 3", "resynced 1", "ready 2", "ready 3", "resynced 2", "joined 3"]);
    expect(fieldsOf(room)).toEqual(fieldsOf(service.view(fake)));
    expect(room.participants).toHaveLength(2);
  });

  it("changes fields before listeners run, and calls settle after their events", async () => {
    const service = new FakeService();
    const client = openTab(service);
    const room = await settle(client.rooms.create({ maxPlayers: 9 }));
    await settle(client.ready);
    const heard: string[] = [];
    room.on("started", () => heard.push(room.status));
    const done = room.start().then(() => heard.push("resolved"));
    await settle(done);
    expect(heard).toEqual(["STARTED", "resolved"]);
  });

  it("ignores what it does not know", async () => {
    const service = new FakeService();
    const client = openTab(service);
    const room = await settle(client.rooms.create({ maxPlayers: 9 }));
    await settle(client.ready);
    await run(100);
    const fake = service.rooms.get(room.roomId)!;
    service.tell(fake, "room.sparkled", { colour: "red" });
    for (const socket of service.sockets) socket.onmessage({ data: "no JSON" });
    const next = room.once("message");
    service.tell(fake, "room.message", { from: 9, op: "move", payload: { x: 1 } });
    expect(await settle(next)).toMatchObject({ type: "message", from: 9, op: "move", payload: { x: 1 } });
  });

  it("presence and turns, in place", async () => {
    const service = new FakeService();
    const [ann, bob] = [openTab(service), openTab(service)];
    const room = await settle(ann.rooms.create({ maxPlayers: 9 }));
    await settle(bob.rooms.join(room.roomId));
    await settle(ann.ready);
    await run(100);
    const fake = service.rooms.get(room.roomId)!;
    const [annId, bobId] = [ann.user!.id, bob.user!.id];
    const heard: any[] = [];
    for (const type of ["connected", "disconnected", "turn", "left", "finished"] as const) {
      room.on(type, (e) => heard.push([e.type, room.presence, room.turn])); // the fields as a listener finds them
    }
    const { version } = room;
    const [here, graceUntil] = [{ userId: annId, connected: true }, service.time()];
    const away = { userId: bobId, connected: false, graceUntil };
    service.connect(fake, annId, undefined, [2]); // it comes twice
    service.connect(fake, bobId, graceUntil);
    await run(100);
    expect(room.version).toBe(version);
    service.connect(fake, bobId, undefined, [0]); // it is lost
    service.connect(fake, bobId, graceUntil);
    await run(1000);
    service.start(fake);
    service.giveTurn(fake, bobId);
    const { deadline } = fake.state.turn;
    await run(100);
    service.leave(fake, bobId); // ann gets the turn
    await run(100);
    service.giveTurn(fake, null);
    service.giveTurn(fake, annId);
    const last = { userId: annId, deadline: fake.state.turn.deadline };
    service.finish(fake);
    await run(100);
    const back = { userId: bobId, connected: true };
    const turn = { userId: bobId, deadline };
    expect(heard.slice(0, 7)).toEqual([
      ["connected", [here, { userId: bobId, connected: false }], undefined],
      ["disconnected", [here, away], undefined],
      ["connected", [here, back], undefined],
      ["disconnected", [here, away], undefined],
      ["turn", [here, away], turn],
      ["left", [here], turn],
      ["turn", [here], { userId: annId, deadline: expect.any(String) }],
    ]);
    expect(heard.slice(7)).toEqual([
      ["turn", [here], null], ["turn", [here], last], ["finished", undefined, undefined],
    ]);
  });

  it("presence, in seating order whoever comes, goes or leaves", async () => {
    const service = new FakeService();
    const client = openTab(service);
    const room = await settle(client.rooms.create({ maxPlayers: 9 }));
    await settle(client.ready);
    await run(100);
    const fake = service.rooms.get(room.roomId)!;
    const ann = client.user!.id;
    const [bob, cleo, dan] = [service.newUser("Bob"), service.newUser("Cleo"), service.newUser("Dan")];
    const heard: [type: string, presence: any][] = [];
    const truth: any[] = [];
    room.on("change", () => heard.push(["change", room.presence]));
    const steps = [
      () => service.join(fake, bob),
      () => service.join(fake, cleo),
      () => service.connect(fake, cleo.id), // the last one first: it tells that the others are not connected
      () => service.connect(fake, ann),
      () => service.connect(fake, bob.id),
      () => service.connect(fake, bob.id, service.time()),
      () => service.join(fake, dan),
      () => service.connect(fake, dan.id),
      () => service.leave(fake, bob.id),
      () => service.join(fake, bob), // at another place
      () => service.connect(fake, bob.id),
    ];
    for (const step of steps) {
      step();
      truth.push(service.view(fake).presence);
      await run(100);
    }
    expect(heard.map(([, presence]) => presence)).toEqual(truth);
    expect(truth[1]).toBe(undefined); // nobody follows it yet
    expect(truth.at(-1).map((p: any) => p.userId)).toEqual([ann, cleo.id, dan.id, bob.id]);
    expect(room.participants.map((u) => u.id)).toEqual([ann, cleo.id, dan.id, bob.id]);
  });

  it("shared state", async () => {
    const service = new FakeService();
    const [ann, bob] = [openTab(service), openTab(service)];
    const room = await settle(ann.rooms.create({ maxPlayers: 9 }));
    const same = await settle(bob.rooms.join(room.roomId));
    await settle(Promise.all([ann.ready, bob.ready]));
    await run(100);
    const heard: any[] = [];
    same.on("state", (e) => heard.push(e.version));
    const fake = service.rooms.get(room.roomId)!;
    const versions = await settle(Promise.all([
      room.shared.set({ a: 1, b: 1 }), same.shared.set({ c: 2 }), same.shared.set({ d: 3 }, { delete: ["b"] }),
    ]));
    expect([...versions].sort()).toEqual([1, 2, 3]);
    await run(100);
    expect(room.shared.value).toEqual(fake.shared.value);
    expect(same.shared.value).toEqual(fake.shared.value);
    expect(heard).toEqual([1, 2, 3]);
  });
});

describe("subscriptions", () => {
  /** Opens a client with rooms that it follows. */
  async function openRooms(n: number) {
    const service = new FakeService();
    const client = openTab(service);
    const errors: any[] = [];
    client.on("error", (e) => errors.push(e));
    await settle(client.ready);
    const rooms = await settle(Promise.all(Array.from({ length: n }, () => client.rooms.create({ maxPlayers: 9 }))));
    await run(1000);
    const heard: string[] = [];
    rooms.forEach((room, i) => {
      for (const type of ["joined", "resynced"] as const) room.on(type, (e) => heard.push(`${i} ${type} ${e.seq}`));
    });
    return {
      service, client, rooms, errors, heard,
      fakes: rooms.map((room) => service.rooms.get(room.roomId)!),
      /** The subscriptions that were asked for since the last call. */
      asked: () => service.frames.splice(0).filter((f) => f.type === "room.subscribe").map((f) => f.data.rooms),
      async reconnect(meanwhile = () => {}) {
        for (const socket of [...service.sockets]) socket.end(1006);
        meanwhile();
        await run(16_000);
      },
    };
  }

  it("are one message after a connection, each from the position of its room", async () => {
    const { service, rooms, fakes, heard, asked, reconnect } = await openRooms(3);
    service.join(fakes[1], service.newUser());
    await run(100);
    const starts = fakes.map(({ state }) => ({ roomId: state.roomId, after: state.position }));
    expect(starts.map((s) => s.after)).toEqual(["1-n", "2-n", "1-n"]);
    asked();
    await reconnect(() => {
      for (const fake of fakes) service.join(fake, service.newUser());
      fakes[2].oldest = fakes[2].state.seq; // its past is gone
    });
    expect(asked()).toEqual([starts]);
    expect(heard).toEqual(["1 joined 2", "2 resynced 2", "0 joined 2", "1 joined 3"]);
    expect(rooms.map((room) => room.participants.length)).toEqual([2, 3, 2]);
    await reconnect();
    expect(asked()).toEqual([fakes.map(({ state }) => ({ roomId: state.roomId, after: state.position }))]);
    expect(heard).toHaveLength(4);
  });

  it("are never more than one message may name, the rooms of the last calls", async () => {
    const { service, client, rooms, asked, reconnect } = await openRooms(18);
    await settle(client.rooms.get(rooms[2].roomId)); // it counts as new
    service.finish(service.rooms.get(rooms[9].roomId)!);
    await run(100);
    const last = await settle(client.rooms.create({ maxPlayers: 9 })); // instead of the one that has ended
    await run(100);
    asked();
    await reconnect();
    const followed = [...rooms.slice(3).filter((room) => room !== rooms[9]), rooms[2], last];
    expect(asked().map((starts) => starts.map((s: any) => s.roomId))).toEqual([followed.map((room) => room.roomId)]);
    expect(followed).toHaveLength(16);
  });

  it("of a room end with unwatch, and go on in a new object", async () => {
    const { service, client, rooms, fakes, heard, asked, reconnect } = await openRooms(16);
    asked();
    const waits = expect(rooms[0].once("joined")).rejects.toMatchObject({ code: "closed" });
    rooms[0].unwatch();
    rooms[0].unwatch();
    await waits;
    service.join(fakes[0], service.newUser());
    service.join(fakes[1], service.newUser());
    await run(100);
    expect([...service.sockets].flatMap((socket) => [...socket.rooms.keys()])).not.toContain(rooms[0].roomId);
    expect(heard).toEqual(["1 joined 2"]);
    expect(rooms[0].participants).toHaveLength(1);
    await settle(client.rooms.create({ maxPlayers: 9 })); // has the place that is free
    const again = await settle(client.rooms.get(rooms[0].roomId)); // and this one takes a place
    expect(again).not.toBe(rooms[0]);
    expect(again.participants).toHaveLength(2);
    rooms[0].unwatch(); // the object of before: the room stays followed
    asked();
    await reconnect();
    const followed = asked().flat().map((start: any) => start.roomId);
    expect(followed).toHaveLength(16);
    expect(followed).toContain(again.roomId);
    expect(followed).not.toContain(rooms[1].roomId);
  });

  it("of a room that is gone are reported once, and the other rooms go on", async () => {
    const { service, rooms, fakes, errors, heard, asked, reconnect } = await openRooms(3);
    asked();
    await reconnect(() => {
      service.rooms.delete(rooms[1].roomId);
      service.join(fakes[0], service.newUser());
    });
    const docs = "https://api.example/docs/errors/room_not_found";
    expect(errors).toMatchObject([{ name: "ParlorError", code: "room_not_found", status: 404, docs }]);
    expect(asked()).toHaveLength(1);
    service.join(fakes[2], service.newUser());
    await run(100);
    expect(heard).toEqual(["0 joined 2", "2 joined 2"]);
    await reconnect();
    expect(asked()).toMatchObject([[{ roomId: rooms[0].roomId, after: "2-n" }, { roomId: rooms[2].roomId }]]);
    expect(errors).toHaveLength(1);
  });

  it("that may work later are asked for again, and only those", async () => {
    const { service, rooms, fakes, errors, heard, asked, reconnect } = await openRooms(3);
    const { roomId } = rooms[1];
    let left = 3;
    service.refusal = (_, room) => (room === roomId && left-- > 0 ? [503, "store_unavailable"] : undefined);
    asked();
    await reconnect(() => { for (const fake of fakes) service.join(fake, service.newUser()); });
    expect(asked().map((starts) => starts.length)).toEqual([3, 1, 1, 1]);
    expect(heard).toEqual(["0 joined 2", "2 joined 2", "1 joined 2"]);
    expect(errors).toEqual([]);
  });

  it("are all asked for again by one message when it was refused", async () => {
    const { service, fakes, errors, heard, asked, reconnect } = await openRooms(3);
    let left = 2;
    service.refusal = (type, room) =>
      type === "room.subscribe" && !room && left-- > 0 ? [429, "rate_limited"] : undefined;
    asked();
    await reconnect(() => { for (const fake of fakes) service.join(fake, service.newUser()); });
    expect(asked().map((starts) => starts.length)).toEqual([3, 3, 3]);
    expect(heard).toEqual(["0 joined 2", "1 joined 2", "2 joined 2"]);
    expect(errors).toEqual([]);
  });

  it("are not asked for again once the client is closed", async () => {
    const { service, client, asked, reconnect } = await openRooms(1);
    service.refusal = (_, room) => (room ? [503, "store_unavailable"] : undefined);
    await reconnect();
    expect(asked().length).toBeGreaterThan(3);
    client.close();
    await run(16_000);
    expect(asked()).toEqual([]);
  });
});
