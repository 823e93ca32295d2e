// Leaderboards: against a client made by hand, and against a real node.
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import WebSocket from "ws";
import { createBoards, type BoardEvent } from "../src/boards.js";
import { createClient } from "../src/client.js";
import { ParlorError } from "../src/errors.js";
import type { Parlor } from "../src/types.js";
import { MemoryStorage } from "./fake_service.js";
import { startNode, type RealNode } from "./node.js";

/** A client whose connection a test makes. */
function fakeClient() {
  const listeners = new Map<string, ((e: any) => void)[]>();
  const replies: { type: string; data: any; resolve(state: any): void; reject(e: unknown): void }[] = [];
  const client: any = {
    state: "online", user: { id: 7 },
    on: (event: string, fn: any) => listeners.set(event, [...(listeners.get(event) || []), fn]),
    get: vi.fn(async () => ({ items: [] })),
    send: (type: string, data: any) => new Promise((resolve, reject) => replies.push({ type, data, resolve, reject })),
  };
  const emit = (event: string, e: any) => listeners.get(event)?.forEach((fn) => fn(e));
  return { client, replies, emit, setState: (state: string) => emit("state", (client.state = state)) };
}

const entry = (id: number) => ({ user: { id }, score: 1000 - id });
const state = (...ids: number[]) => ({ mode: "snapshot", season: 1, version: 1, entries: ids.map(entry), me: ids.map(entry) });
const ids = (events: BoardEvent[]) =>
  events.map((e) => (e.type === "changed" ? e.entries.map((x: any) => x.user.id).join(" ") : e.type));
const settled = () => new Promise((resolve) => setTimeout(resolve));

describe("a leaderboard that is watched", () => {
  it("shares one subscription, and shows each what it asked for", async () => {
    const { client, replies, emit } = fakeClient();
    const boards = createBoards(client);
    expect(createBoards(client)).toBe(boards);
    const few: BoardEvent[] = [];
    const many: BoardEvent[] = [];
    const stopFew = boards.watch("weekly", (e) => few.push(e), { top: 2 });
    const stopMany = boards.watch("weekly", (e) => many.push(e), { top: 5, around: 3 });
    expect(replies.map((r) => r.data)).toEqual([{ board: "weekly", top: 2 }, { board: "weekly", top: 5, around: 3 }]);
    emit("board.changed", { board: "weekly", data: state(9) }); // of the first request: its reply is not the last
    replies[0].resolve(state(9));
    replies[1].resolve(state(1, 2, 3));
    await settled();
    expect([ids(few), ids(many)]).toEqual([["1 2"], ["1 2 3"]]);
    expect([(few[0] as any).me, (many[0] as any).me.length]).toEqual([null, 3]);
    emit("board.changed", { board: "weekly", data: state(2, 1, 3) });
    emit("board.changed", { board: "daily", data: state(4) });
    emit("board.season_ended", { board: "weekly", data: { season: { season: 1 } } });
    emit("board.season_started", { board: "weekly", data: { season: { season: 2 } } });
    expect(ids(few)).toEqual(["1 2", "2 1", "seasonEnded", "seasonStarted"]);
    stopFew();
    stopFew();
    expect(replies).toHaveLength(2);
    stopMany();
    expect(replies[2]).toMatchObject({ type: "board.unsubscribe", data: { board: "weekly" } });
    emit("board.changed", { board: "weekly", data: state(5) });
    expect(ids(many)).toHaveLength(4);
  });

  it("is asked for again after each lost connection, and after an error that passes", async () => {
    const { client, replies, setState } = fakeClient();
    const boards = createBoards(client);
    const events: BoardEvent[] = [];
    setState("offline");
    boards.watch("weekly", (e) => events.push(e));
    expect(replies).toHaveLength(0);
    setState("online");
    replies[0].reject(new ParlorError("offline"));
    setState("reconnecting");
    setState("online");
    replies[1].resolve(state(1));
    await settled();
    expect(ids(events)).toEqual(["1"]);
    vi.useFakeTimers();
    setState("online");
    replies[2].reject(new ParlorError("rate_limited", "", { retryable: true, retryAfterMs: 500 }));
    await vi.advanceTimersByTimeAsync(600);
    vi.useRealTimers();
    replies[3].resolve(state(2));
    await settled();
    expect(ids(events)).toEqual(["1", "2"]);
  });

  it("ends with an error that will not mend, and by a signal", async () => {
    const { client, replies } = fakeClient();
    const boards = createBoards(client);
    const events: BoardEvent[] = [];
    boards.watch("none", (e) => events.push(e));
    replies[0].reject(new ParlorError("board_not_found", "", { status: 404 }));
    await settled();
    expect(events).toMatchObject([{ type: "error", board: "none", error: { code: "board_not_found" } }]);
    const signal = new AbortController();
    boards.watch("weekly", (e) => events.push(e), { signal: signal.signal });
    signal.abort();
    expect(replies[2].type).toBe("board.unsubscribe");
    boards.watch("weekly", (e) => events.push(e), { signal: signal.signal });
    expect(replies).toHaveLength(3);
  });

  it("goes on when a listener throws", async () => {
    const { client, replies } = fakeClient();
    const boards = createBoards(client);
    const thrown = vi.spyOn(console, "error").mockImplementation(() => {});
    const events: BoardEvent[] = [];
    boards.watch("weekly", () => { throw new Error("of the page"); });
    boards.watch("weekly", (e) => events.push(e));
    replies[1].resolve(state(1));
    await settled();
    expect(ids(events)).toEqual(["1"]);
    expect(String(thrown.mock.calls[0])).toContain("of the page");
    thrown.mockRestore();
  });

  it("refuses misuse at once", () => {
    const boards = createBoards(fakeClient().client);
    expect(() => createBoards({} as any)).toThrow(TypeError);
    expect(() => boards.watch("", () => {})).toThrow(TypeError);
    expect(() => boards.watch("weekly", undefined as any)).toThrow(TypeError);
  });
});

describe("the leaderboards of a real node", () => {
  let node: RealNode;
  const clients = new Set<Parlor>();
  beforeAll(async () => { node = await startNode(); }, 300_000);
  afterAll(() => node?.stop());
  afterEach(() => {
    clients.forEach((client) => client.close());
    clients.clear();
  });

  async function open(name: "ada" | "bob" | "cleo") {
    const getToken = async () => node.tokens[name];
    const client = createClient({ gameId: "1", storage: new MemoryStorage(), WebSocket, getToken }, node.url, () => {});
    clients.add(client);
    await client.ready;
    return { client, boards: createBoards(client) };
  }

  it("are read, written and watched by the seeded players", async () => {
    const [ada, bob] = await Promise.all([open("ada"), open("bob")]);
    expect((await ada.boards.list()).items.map((b) => b.board)).toEqual(["weekly"]);
    expect(await ada.boards.get("weekly")).toMatchObject({ name: "Best of the week", season: { season: 1, status: "OPEN" } });
    const events: BoardEvent[] = [];
    const stop = ada.boards.watch("weekly", (e) => events.push(e), { top: 1, around: 1 });
    await vi.waitFor(() => expect(events).toHaveLength(1), 5000);
    const me = bob.client.user!.id;
    const result = await bob.boards.submit("weekly", "2000");
    expect(result).toMatchObject({ changed: true, entry: { rank: 1, score: 2000, user: { id: me } } });
    await vi.waitFor(() => {
      const last: any = events.at(-1);
      expect(last.entries[0]).toMatchObject({ rank: 1, score: 2000, user: { id: me } });
      expect(last.me[0]).toMatchObject({ rank: 2, user: { id: ada.client.user!.id } });
    }, 8000);
    stop();

    expect((await bob.boards.submit("weekly", { score: 1, metadata: { level: 3 } })).changed).toBe(false);
    const page = await bob.boards.entries("weekly", { limit: 2 });
    expect(page.items.map((e) => e.rank)).toEqual([1, 2]);
    const rest = await bob.boards.entries("weekly", { limit: 2, cursor: page.nextCursor! });
    expect(rest.items.map((e) => e.rank)).toEqual([3]);
    expect((await bob.boards.around("weekly", { limit: 3 })).map((e) => e.rank)).toEqual([1, 2, 3]);
    expect((await bob.boards.friends("weekly")).map((e) => e.user.id)).toEqual([me]);
    expect(await bob.boards.entry("weekly")).toMatchObject({ user: { id: me }, submissions: 3 });
    expect(await bob.boards.entry("weekly", ada.client.user!.id)).toMatchObject({ rank: 2 });
    expect((await bob.boards.seasons("weekly")).items).toMatchObject([{ season: 1 }]);
    await expect(bob.boards.get("none")).rejects.toMatchObject({ code: "board_not_found" });
    await expect(bob.boards.submit("weekly", "many")).rejects.toMatchObject({ code: "invalid_request" });
  }, 30_000);

  it("have leagues", async () => {
    const league = { size: 10, tiers: ["bronze", "silver"], promote: 1, relegate: 1 };
    const made = { board: "duels", name: "Duels", writers: "players", league };
    await node.call(node.adminKey, "POST", "admin/games/1/leaderboards", made);
    const { client, boards } = await open("ada");
    await expect(boards.league("duels")).rejects.toMatchObject({ code: "entry_not_found" });
    await boards.submit("duels", 5);
    expect(await boards.league("duels", { season: 1 })).toMatchObject({
      season: 1, tier: "bronze", promote: 1, relegate: 1, entries: [{ rank: 1, user: { id: client.user!.id } }],
    });
    await expect(boards.league("weekly")).rejects.toMatchObject({ code: "invalid_request" });
  }, 30_000);

  it("begin plays", async () => {
    const rules = { play: true, maxPlaySeconds: 60 };
    await node.call(node.adminKey, "POST", "admin/games/1/leaderboards", { board: "sprint", name: "Sprint", writers: "players", rules });
    const { boards } = await open("cleo");
    const { playId } = await boards.startPlay("sprint");
    expect((await boards.submit("sprint", { score: 12, playId })).entry.rank).toBe(1);
    await expect(boards.submit("sprint", { score: 13, playId })).rejects.toMatchObject({ code: "play_used" });
  }, 30_000);
});
