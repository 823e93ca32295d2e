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
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("snapshot" as const) }) },
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

/**
 * What a page can show of a room. A snapshot names the players who never came, too, and events do
 * not; null and no turn are the same.
 */
function fieldsOf(room: any) {
  const { turn, presence = [], ...fields } = JSON.parse(typeof room === "string" ? room : JSON.stringify(room));
  const seen = presence.filter((p: any) => p.connected || p.graceUntil).sort((a: any, b: any) => a.userId - b.userId);
  return { ...fields, turn: turn ?? null, presence: seen };
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
      const heard: { type: string; seq: number; view: string }[] = [];
      for (const type of ["joined", "left", "ready", "connected", "disconnected", "turn", "resynced"] as const) {
        room.on(type, (e: any) => heard.push({ type: e.type, seq: e.seq, view: JSON.stringify(room) }));
      }
      const first = room.seq;
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
        } else if (s.kind === "snapshot") {
          // An old snapshot, shared with a slower subscriber.
          const seqs = [...fake.history.keys()];
          const old = JSON.parse(fake.history.get(seqs[seqs.length >> 1])!);
          for (const socket of service.sockets) {
            if (socket.rooms.has(room.roomId) && old.seq <= room.seq) {
              socket.say({ type: "room.snapshot", roomId: room.roomId, seq: old.seq, position: old.position,
                at: service.time(), data: { mode: "snapshot", room: old, position: old.position } });
            }
          }
        } else happen(service, fake, s.kind, s.n, s.delivery);
      }
      service.loseFrame = () => undefined;
      service.fault = () => undefined;
      await run(40_000);
      happen(service, fake, "ready", 1, [1]); // shows a connection that it missed something
      await run(40_000);

      let last = first;
      for (const { type, seq, view } of heard) {
        if (type === "resynced") {
          expect(seq).toBeGreaterThan(last);
          resyncs++;
        } else {
          expect(seq).toBe(last + 1);
          events++;
        }
        expect(fieldsOf(view)).toEqual(fieldsOf(fake.history.get(seq)!)); // fields first, then listeners
        last = seq;
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

  it("does not apply a snapshot that is older than the room", async () => {
    const service = new FakeService();
    const client = openTab(service);
    const room = await settle(client.rooms.create({ maxPlayers: 9 }));
    await settle(client.ready);
    await run(1000);
    const fake = service.rooms.get(room.roomId)!;
    const old = service.view(fake);
    service.join(fake, service.newUser());
    await run(1000);
    for (const socket of service.sockets) {
      socket.say({ type: "room.snapshot", roomId: room.roomId, seq: 1, position: "1-n", at: service.time(),
        data: { mode: "snapshot", room: old, position: "1-n" } });
    }
    await run(1000);
    expect(room.version).toBe(2);
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
      ["connected", [here], undefined],
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
