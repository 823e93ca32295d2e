// Plays with a generated client: a paid game, a purchase, a score and a tournament.
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";

interface Room { roomId: string; status: string }
interface Tournament { tournamentId: number; status: string }

/** What the story calls. Each generator has a file that fills it with the functions of its client. */
export interface Calls {
  balances(token: string): Promise<{ balances: { tokenId: string; amount: string }[] }>;
  createRoom(token: string, body: { entryTokenId: number; roomEntry: string; maxPlayers: number }): Promise<Room>;
  getRoom(token: string, roomId: string): Promise<Room>;
  joinRoom(token: string, roomId: string): Promise<Room>;
  startRoom(token: string, roomId: string): Promise<Room>;
  finishRoom(token: string, key: string, body: { roomId: string; results: { userId: number; place: number }[] }): Promise<Room>;
  purchase(token: string, key: string, asset: number): Promise<{ totalAmount: string }>;
  submitScore(token: string, board: string, score: string): Promise<{ entry: { score: number } }>;
  createTournament(token: string, body: {
    name: string; format: "single_elimination"; maxEntrants: number; entryTokenId: number; entryFee: string; startsAt: string;
  }): Promise<Tournament>;
  joinTournament(token: string, id: number): Promise<Tournament>;
  startTournament(token: string, id: number): Promise<Tournament>;
  getTournament(token: string, id: number): Promise<Tournament>;
  listMatches(token: string, id: number): Promise<{ items: { roomId: string | null }[] }>;
}

const { ADA_TOKEN: ada = "", BOB_TOKEN: bob = "", SERVER_KEY: server = "", ADMIN_KEY: operator = "" } = process.env;

/** Runs the story. It throws when a call is refused or a balance is wrong. */
export async function play(calls: Calls): Promise<void> {
  const gold = async (token: string) =>
    BigInt((await calls.balances(token)).balances.find((one) => one.tokenId === "GOLD")!.amount);
  const before = [await gold(ada), await gold(bob)] as const;
  const expectGold = async (change: bigint, changeOfBob: bigint) =>
    assert.deepEqual([await gold(ada), await gold(bob)], [before[0] + change, before[1] + changeOfBob]);
  const finish = async (roomId: string) => {
    for (let times = 0; times < 2; times++) { // the second request has the same key, and changes nothing
      const results = [{ userId: 1, place: 1 }, { userId: 2, place: 2 }];
      assert.equal((await calls.finishRoom(server, `finish-${roomId}`, { roomId, results })).status, "FINISHED");
    }
  };

  const { roomId } = await calls.createRoom(ada, { entryTokenId: 1, roomEntry: "2.50", maxPlayers: 2 });
  await calls.joinRoom(bob, roomId);
  await calls.startRoom(ada, roomId);
  await finish(roomId);
  await expectGold(250n, -250n);

  assert.equal((await calls.purchase(ada, "sword-of-ada", 1)).totalAmount, "250");
  assert.equal((await calls.submitScore(ada, "weekly", "1250")).entry.score, 1250);
  await expectGold(0n, -250n);

  const { tournamentId } = await calls.createTournament(operator, {
    name: "Cup", format: "single_elimination", maxEntrants: 2, entryTokenId: 1, entryFee: "2.50",
    startsAt: new Date(Date.now() + 3_600_000).toISOString(),
  });
  await calls.joinTournament(ada, tournamentId);
  await calls.joinTournament(bob, tournamentId);
  await calls.startTournament(operator, tournamentId);
  const match = await waitFor(async () => (await calls.listMatches(ada, tournamentId)).items[0]?.roomId);
  await calls.joinRoom(ada, match);
  await calls.joinRoom(bob, match);
  await waitFor(async () => (await calls.getRoom(ada, match)).status === "STARTED");
  await finish(match);
  await waitFor(async () => (await calls.getTournament(ada, tournamentId)).status === "FINISHED");
  await expectGold(250n, -500n);
}

/** Asks until there is a value, for at most 30 seconds. */
async function waitFor<T>(ask: () => Promise<T | null | undefined | false>): Promise<T> {
  for (const end = Date.now() + 30_000; Date.now() < end; await pause(50)) {
    const value = await ask();
    if (value) return value;
  }
  throw new Error(`waited too long: ${ask.toString()}`);
}
