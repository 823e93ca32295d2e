// Tournaments: against a client made by hand, and against a real node.
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import WebSocket from "ws";
import { createClient } from "../src/client.js";
import { ParlorError } from "../src/errors.js";
import { createTournaments, type Followed } from "../src/tournaments.js";
import type { Parlor } from "../src/types.js";
import { MemoryStorage } from "./fake_service.js";
import { startNode, type RealNode } from "./node.js";

/** A client whose connection a test makes. */
function fakeClient() {
  const listeners = new Map<string, ((e: any) => void)[]>();
  const replies: { type: string; data: any; resolve(data: any): void; reject(e: unknown): void }[] = [];
  const client: any = {
    state: "online",
    on(event: string, fn: any) {
      listeners.set(event, [...(listeners.get(event) || []), fn]);
      return () => listeners.set(event, listeners.get(event)!.filter((x) => x !== fn));
    },
    get: vi.fn(async () => ({ items: [] })),
    send: (type: string, data: any) => new Promise((resolve, reject) => replies.push({ type, data, resolve, reject })),
  };
  const emit = (event: string, e: any) => listeners.get(event)?.forEach((fn) => fn(e));
  const happen = (name: string, seq: number, tournamentId = 12) => emit(`tournament.${name}`, {
    type: `tournament.${name}`, tournamentId, seq, position: `${seq}-x`, at: "2026-11-20T17:32:26.123Z", data: {},
  });
  return { client, replies, emit, happen, setState: (state: string) => emit("state", (client.state = state)) };
}

const tournament = (seq: number) => ({ tournamentId: 12, seq, position: `${seq}-x`, status: "RUNNING" });
const names = (events: Followed[]) =>
  events.map((e) => (e.type === "snapshot" ? `snapshot ${e.tournament.seq}` : "seq" in e ? `${e.type} ${e.seq}` : e.type));
const settled = () => new Promise((resolve) => setTimeout(resolve));

it("hears every event once and in order, over lost connections", async () => {
  const { client, replies, happen, setState } = fakeClient();
  const events: Followed[] = [];
  const stop = createTournaments(client).follow(12, (e) => events.push(e));
  replies[0].resolve({ mode: "snapshot", tournament: tournament(3), position: "3-x" });
  await settled();
  happen("joined", 3); // in the snapshot
  happen("joined", 4);
  happen("joined", 4);
  happen("joined", 4, 99); // of another one
  happen("started", 6); // 5 is missing
  expect(replies[1]).toMatchObject({ type: "tournament.subscribe", data: { tournamentId: 12, after: "4-x" } });
  replies[1].resolve({ mode: "resume", position: "4-x" });
  await settled();
  happen("checked_in", 5);
  happen("started", 6);
  setState("reconnecting");
  setState("online");
  expect(replies[2].data.after).toBe("6-x");
  replies[2].resolve({ mode: "snapshot", tournament: tournament(40), position: "40-x" });
  await settled();
  expect(names(events)).toEqual(["snapshot 3", "joined 4", "checked_in 5", "started 6", "snapshot 40"]);
  stop();
  expect(replies[3]).toMatchObject({ type: "tournament.unsubscribe", data: { tournamentId: 12 } });
  happen("settled", 41);
  expect(events).toHaveLength(5);
});

it("shows a snapshot after a failover that lost events, whatever its number", async () => {
  const { client, replies, emit, happen } = fakeClient();
  const events: Followed[] = [];
  createTournaments(client).follow(12, (e) => events.push(e));
  replies[0].resolve({ mode: "snapshot", tournament: tournament(8), position: "8-x" });
  await settled();
  happen("joined", 9);
  const left = { ...tournament(8), position: "8-x" };
  emit("tournament.snapshot", { type: "tournament.snapshot", tournamentId: 12, seq: 8, data: { tournament: left } });
  happen("left", 9);
  expect(names(events)).toEqual(["snapshot 8", "joined 9", "snapshot 8", "left 9"]);
});

it("gives a second listener the whole, also while the subscription is asked for", async () => {
  const { client, replies, happen, setState } = fakeClient();
  const tournaments = createTournaments(client);
  const first: Followed[] = [];
  const second: Followed[] = [];
  tournaments.follow(12, (e) => first.push(e));
  replies[0].resolve({ mode: "snapshot", tournament: tournament(3), position: "3-x" });
  await settled();
  setState("reconnecting");
  setState("online");
  tournaments.follow(12, (e) => second.push(e)); // the reply to the first one is on its way
  expect(replies[1].data.after).toBe("3-x");
  replies[1].resolve({ mode: "resume", position: "3-x" });
  await settled();
  happen("joined", 4);
  expect(replies[2].data.after).toBeUndefined();
  replies[2].reject(new ParlorError("store_unavailable", "", { status: 503, retryable: true, retryAfterMs: 1 }));
  await vi.waitFor(() => expect(replies).toHaveLength(4));
  expect(replies[3].data.after).toBeUndefined(); // it still needs the whole
  replies[3].resolve({ mode: "snapshot", tournament: tournament(4), position: "4-x" });
  await settled();
  happen("started", 5);
  expect(names(second)).toEqual(["joined 4", "snapshot 4", "started 5"]);
  expect(names(first)).toEqual(["snapshot 3", "joined 4", "snapshot 4", "started 5"]);
});

it("ends with an error that will not mend, and hears the matches of the player", async () => {
  const { client, replies, emit } = fakeClient();
  const tournaments = createTournaments(client);
  const events: Followed[] = [];
  tournaments.follow(12, (e) => events.push(e));
  replies[0].reject(new ParlorError("not_found", "", { status: 404 }));
  await settled();
  expect(events).toMatchObject([{ type: "error", tournamentId: 12, error: { code: "not_found" } }]);
  const matches: any[] = [];
  const off = tournaments.onMatch((e) => matches.push(e));
  emit("match", { tournamentId: 12, matchId: "r1m1", roomId: "x", deadline: "2026-11-20T17:32:26.123Z" });
  off();
  emit("match", {});
  expect(matches).toMatchObject([{ matchId: "r1m1" }]);
});

it("calls what the contract names", async () => {
  const { client } = fakeClient();
  const tournaments = createTournaments(client);
  await tournaments.list({ status: "RUNNING" });
  await tournaments.get(12);
  await tournaments.matches(12, { round: 2 });
  await tournaments.join(12, { idempotencyKey: "k" });
  await tournaments.checkIn(12);
  expect(client.get.mock.calls).toEqual([
    ["tournaments", { query: { status: "RUNNING" } }],
    ["tournaments/12", { query: undefined }],
    ["tournaments/12/matches", { query: { round: 2 } }],
    ["tournaments/12/join", { idempotencyKey: "k", method: "POST" }],
    ["tournaments/12/check-in", { method: "POST" }],
  ]);
  await expect(tournaments.get(0)).rejects.toThrow(TypeError);
  expect(() => tournaments.follow(1, undefined as any)).toThrow(TypeError);
});

describe("the tournaments of a real node", () => {
  let node: RealNode;
  const clients: Parlor[] = [];
  beforeAll(async () => { node = await startNode(); }, 300_000);
  afterAll(async () => {
    clients.forEach((client) => client.close());
    await node?.stop();
  });

  async function open(name: "ada" | "bob") {
    const getToken = async () => node.tokens[name];
    const client = createClient({ gameId: "1", storage: new MemoryStorage(), WebSocket, getToken }, node.url, () => {});
    clients.push(client);
    await client.ready;
    return { client, tournaments: createTournaments(client) };
  }

  it("are joined, followed and played by the seeded players", async () => {
    const made = await node.call(node.adminKey, "POST", "admin/games/1/tournaments", {
      name: "Cup", format: "single_elimination", maxEntrants: 2, startsAt: new Date(Date.now() + 3_600_000).toISOString(),
    });
    const id = made.tournamentId;
    const [ada, bob] = await Promise.all([open("ada"), open("bob")]);
    const events: Followed[] = [];
    const matches: any[] = [];
    ada.tournaments.follow(id, (e) => events.push(e));
    bob.tournaments.onMatch((e) => matches.push(e));
    await vi.waitFor(() => expect(events).toHaveLength(1), 5000);
    expect((await ada.tournaments.join(id)).entrants).toBe(1);
    expect(await bob.tournaments.join(id)).toMatchObject({ entrants: 2, status: "REGISTRATION" });
    expect((await ada.tournaments.entrants(id)).items).toHaveLength(2);
    await node.call(node.adminKey, "POST", `admin/games/1/tournaments/${id}/start`, {});
    await vi.waitFor(() => expect(matches).toHaveLength(1), 10_000);
    expect(matches[0]).toMatchObject({ tournamentId: id, matchId: "r1m1" });
    await vi.waitFor(() => expect(events.map((e) => e.type)).toContain("match_ready"), 10_000);
    expect(events.map((e) => e.type).slice(0, 3)).toEqual(["snapshot", "joined", "joined"]);
    expect((await ada.tournaments.matches(id)).items).toMatchObject([{ matchId: "r1m1", roomId: matches[0].roomId }]);
    expect((await bob.client.rooms.join(matches[0].roomId)).roomId).toBe(matches[0].roomId);
    await expect(ada.tournaments.get(id + 1)).rejects.toMatchObject({ code: "tournament_not_found" });
  }, 40_000);

  it("are left, checked into and played for a score", async () => {
    const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
    const { tournamentId: id } = await node.call(node.adminKey, "POST", "admin/games/1/tournaments", {
      name: "Race", format: "score", minEntrants: 1, maxEntrants: 2, attempts: 1,
      checkInOpensAt: inMs(0), startsAt: inMs(3_600_000), endsAt: inMs(7_200_000),
    });
    const { tournaments } = await open("ada");
    await expect(tournaments.leave(id)).rejects.toMatchObject({ code: "not_entrant" });
    await tournaments.join(id);
    expect((await tournaments.leave(id)).entrants).toBe(0);
    expect((await tournaments.join(id)).entrants).toBe(1);
    await vi.waitFor(async () => expect((await tournaments.get(id)).status).toBe("CHECK_IN"), 10_000);
    expect((await tournaments.checkIn(id)).checkedIn).toBe(1);
    await expect(tournaments.startAttempt(id)).rejects.toMatchObject({ code: "tournament_closed" });
    await node.call(node.adminKey, "POST", `admin/games/1/tournaments/${id}/start`, {});
    expect(await tournaments.startAttempt(id)).toMatchObject({ playId: expect.any(String), attemptsLeft: 0 });
    await expect(tournaments.startAttempt(id)).rejects.toMatchObject({ code: "attempts_exhausted" });
    expect((await tournaments.standings(id)).items).toEqual([]);
    await expect(tournaments.leave(id + 1)).rejects.toMatchObject({ code: "tournament_not_found" });
  }, 40_000);
});
