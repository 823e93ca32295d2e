import { describe, expect, it, vi } from "vitest";
import { FakeService, MemoryStorage } from "./fake_service.js";
import { openTab, run, settle, useFakeClock } from "./tab.js";

useFakeClock();

async function open(storage = new MemoryStorage()) {
  const service = new FakeService();
  const client = openTab(service, { storage });
  const room = await settle(client.rooms.create({ maxPlayers: 9 }));
  await settle(client.ready);
  await run(6000);
  const lose = async () => {
    service.reachable = false;
    for (const s of [...service.sockets]) s.end(1006);
    await run(10);
  };
  return { service, client, room, storage, lose };
}

describe("messages", () => {
  it("are sent in order, also what waited for the connection", async () => {
    const { service, room, lose } = await open();
    room.send("move", { n: 0 }, { to: [7], latest: true });
    await run(100);
    await lose();
    for (let n = 1; n < 5; n++) room.send("move", { n });
    room.send("aim", {}, { volatile: true });
    service.reachable = true;
    await run(5000);
    expect(service.messages.map((m) => m.payload.n)).toEqual([0, 1, 2, 3, 4]);
    expect(service.messages[0]).toMatchObject({ to: [7], latest: true });
    expect(service.messages[1]).not.toHaveProperty("latest");
  });

  it("wait in a bounded queue: 64, or 256 KB", async () => {
    const { room, lose } = await open();
    await lose();
    for (let n = 0; n < 64; n++) room.send("move", n);
    expect(() => room.send("move", 64)).toThrow("queue_full");

    const large = await open();
    await large.lose();
    for (let n = 0; n < 16; n++) large.room.send("move", "x".repeat(16_000));
    expect(() => large.room.send("move", "x".repeat(16_000))).toThrow("queue_full");
  });

  it("that have waited for 10 s fail then, also while there is no connection", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0); // the client connects again at once
    const { service, client, room, lose } = await open();
    const errors: any[] = [];
    client.on("error", (e) => errors.push(e));
    await lose();
    room.send("move", 1);
    room.send("move", 2);
    await run(4000);
    room.send("move", 3);
    await run(5900);
    expect(errors).toEqual([]);
    await run(200);
    expect(errors).toMatchObject([{ code: "timeout", detail: "2 messages" }]);
    await run(4000);
    expect(errors).toMatchObject([{}, { code: "timeout", detail: "1 messages" }]);
    room.send("move", 4);
    service.reachable = true;
    await run(9000);
    expect(service.messages.map((m) => m.payload)).toEqual([4]);
    expect(errors).toHaveLength(2);
    await lose();
    room.send("move", 5);
    client.close();
    const onConsole = vi.spyOn(console, "error");
    await run(20_000);
    expect([errors.length, onConsole.mock.calls]).toEqual([2, []]);
    vi.restoreAllMocks();
  });

  it("are paced below the rate at which the service closes", async () => {
    const { service, room } = await open();
    const before = service.frames.length;
    for (let n = 0; n < 160; n++) room.send("move", n);
    await run(10);
    expect(service.frames.length - before).toBeLessThanOrEqual(101);
    await run(3000);
    expect(service.messages.map((m) => m.payload)).toEqual(Array.from({ length: 160 }, (_, n) => n));
  });

  it("that are too large or have no name are refused at once", async () => {
    const { room } = await open();
    expect(() => room.send("move", "é".repeat(8200))).toThrow("payload_too_large");
    expect(() => room.send("" as any, 1)).toThrow(TypeError);
  });
});

describe("saves", () => {
  it("within 500 ms are one, the newest, and all callers hear of it", async () => {
    const { service, client } = await open();
    const state = { gold: 1 };
    const first = client.progress.save("main", state);
    state.gold = 99; // what is saved is how it was
    const saves = [first, client.progress.save("main", { gold: 2 }), client.progress.save("main", { gold: 3 })];
    const saved = await settle(Promise.all(saves));
    expect(saved.map((s) => s.version)).toEqual([1, 1, 1]);
    expect(service.saves.get("main")).toEqual({ version: 1, state: { gold: 3 } });
    expect(service.frames.filter((f) => f.type === "save")).toHaveLength(1);
    expect(await settle(client.progress.load("main"))).toMatchObject({ version: 1, state: { gold: 3 } });
    expect(await settle(client.progress.load("none"))).toBe(null);
  });

  it("wait for the connection and for the next page, the newest and the one on its way", async () => {
    const { service, client, storage, lose } = await open();
    await settle(client.progress.save("main", { gold: 1 }));
    await lose();
    client.progress.save("main", { gold: 2 }).catch(() => {});
    await run(2000);
    client.progress.save("main", { gold: 3 }).catch(() => {});
    await run(2000);
    client.close();
    service.reachable = true;
    const next = openTab(service, { storage });
    await settle(next.ready);
    await run(5000);
    expect(service.saves.get("main")).toEqual({ version: 3, state: { gold: 3 } });
    expect([...storage.map.keys()].filter((key) => key.includes(":save:"))).toEqual([]);
  });

  it("whose reply was lost are saved once", async () => {
    const { service, client } = await open();
    let lost = 0;
    service.loseFrame = (type) => (type === "save" && lost++ < 3 ? "after" : undefined);
    expect(await settle(client.progress.save("main", { gold: 1 }))).toMatchObject({ version: 1 });
    expect(lost).toBe(4);
    expect(service.saves.get("main")!.version).toBe(1);
    await settle(client.progress.save("main", { gold: 2 }));
    expect(service.saves.get("main")).toEqual({ version: 2, state: { gold: 2 } });
  });

  it("of two devices are merged, or rejected with both copies", async () => {
    const { service, client } = await open();
    await settle(client.progress.save("main", { gold: 1 }));
    service.saves.set("main", { version: 5, state: { gold: 50 } });
    await expect(settle(client.progress.save("main", { gold: 2 }))).rejects.toMatchObject({
      code: "version_conflict", data: { mine: { gold: 2 }, theirs: { gold: 50 }, version: 5 },
    });
    expect(service.saves.get("main")!.state).toEqual({ gold: 50 });
    const merge = (mine: any, theirs: any) => ({ gold: mine.gold + theirs.gold });
    await settle(client.progress.save("main", { gold: 2 }, { merge }));
    expect(service.saves.get("main")).toEqual({ version: 6, state: { gold: 52 } });
  });

  it("wait in at most 16 slots, and close their socket when there is nothing to do", async () => {
    const { service, client } = await open();
    const saves = Array.from({ length: 16 }, (_, n) => client.progress.save(`s${n}`, {}));
    await expect(client.progress.save("s16", {})).rejects.toMatchObject({ code: "queue_full" });
    await settle(Promise.all(saves));
    expect([...service.sockets].some((s) => s.path === "game-data/save")).toBe(true);
    await run(15_000);
    expect([...service.sockets].some((s) => s.path === "game-data/save")).toBe(false);
  });

  it("that cannot be are refused at once", async () => {
    const { client } = await open();
    await expect(client.progress.save("no/slot", {})).rejects.toThrow(TypeError);
    await expect(client.progress.save("main", [])).rejects.toThrow(TypeError);
    const tooLarge = client.progress.save("main", { text: "x".repeat(262_144) });
    await expect(tooLarge).rejects.toMatchObject({ code: "payload_too_large" });
  });
});
