// The race, in calls of the SDK. This file is the whole game: main.tsx shows it, bot.ts plays it too.
import type { Parlor, Room, RoomData } from "/sdk/v1.mjs";
import { fetchMoves, requestMove, type Move, type Rules } from "./referee";

/** The messages of players to each other: how many moves there are by now. */
export interface Messages { moved: { n: number } }

export class Game {
  room: Room<Messages> | null = null;
  races: RoomData[] = []; // that wait for a second player
  moves: Move[] = [];
  won: Record<number, string> = {}; // by user id, once the race is over

  constructor(readonly parlor: Parlor<Messages>, readonly rules: Rules, readonly changed: () => void) {
    // What was missed while the connection was down: the SDK resumes the room, we ask for the moves.
    parlor.on("state", (state) => { if (state === "online") void this.catchUp(); });
  }

  /** Opens a race. The entry fee leaves the wallet in the same step. */
  async create() {
    const { entryTokenId, entry } = this.rules;
    const race = { maxPlayers: 2, entryTokenId, roomEntry: entry, metadata: { game: "race" } };
    this.enter(await this.parlor.rooms.create(race));
  }

  /** Takes the second seat. Whoever has too little for it gets insufficient_funds, and no seat. */
  async join(roomId: string) {
    this.enter(await this.parlor.rooms.join(roomId));
  }

  /** Starts the race: from now on the stakes are locked, and the referee's clock runs. */
  async start() {
    await this.room!.start();
  }

  /** Asks the referee to roll, and tells the other player that there is something new. */
  async move() {
    const room = this.room!;
    const move = await requestMove(room.roomId, await this.parlor.account.token());
    this.take([move]);
    room.send("moved", { n: move.n }, { volatile: true });
  }

  /** The host calls the race off, a guest leaves. Before the start every stake comes back. */
  async cancel() {
    const room = this.room!;
    await (room.host.id === this.parlor.user!.id && room.status === "CREATED" ? room.cancel() : room.leave());
    if (room.status === "CREATED") this.room = null;
    this.changed();
  }

  /** Finds the races that wait for a second player. */
  async look() {
    const { entryTokenId, entry } = this.rules;
    const { items } = await this.parlor.rooms.list({ entryTokenId, maxEntry: entry, hasSeat: true, limit: 50 });
    this.races = items.filter((race) => race.metadata.game === "race");
    this.changed();
  }

  /** Finds the race in which this player was before the page was loaded again. */
  async comeBack() {
    const [room] = (await this.parlor.rooms.mine()).filter((race) => race.metadata.game === "race");
    if (room) this.enter(room);
  }

  /** Follows a room. Its fields change in place, so there is nothing to keep but what we add. */
  private enter(room: Room<Messages>) {
    this.room = room;
    this.moves = [];
    this.won = {};
    room.on("change", () => this.changed());
    room.on("message", () => void this.catchUp());
    room.on("finished", (event) => {
      for (const { userId, payout } of event.payouts) this.won[userId] = String(payout);
      void this.catchUp();
    });
    void this.catchUp();
    this.changed();
  }

  /** Asks for the moves after the last one that we have: a message may be lost, a move is not. */
  private async catchUp() {
    const { room } = this;
    if (!room || room.status === "CREATED" || room.status === "CANCELLED") return;
    this.take(await fetchMoves(room.roomId, this.moves.length));
  }

  /** Adds moves in their order, each once. */
  private take(moves: Move[]) {
    for (const move of moves) {
      if (move.n === this.moves.length + 1) this.moves.push(move);
      else if (move.n > this.moves.length) void this.catchUp();
    }
    this.changed();
  }

  /** How far a player is. */
  steps(userId: number): number {
    return this.moves.findLast((move) => move.userId === userId)?.steps ?? 0;
  }
}
