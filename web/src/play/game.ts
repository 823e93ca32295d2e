// The race, in calls of the SDK. This file is the whole game: main.tsx shows it, bot.ts plays it too.
import type { Parlor, Room, RoomData } from "/sdk/v1.mjs";

/** What the page has to know of its game. */
export interface Stake {
  gameId: number;
  entryTokenId: number;
  entry: string; // a decimal of the token
}

/** What the referee says of a race: the value "race" of the room's shared state. */
export interface Rules {
  finishLine: number; // steps
  endsAt: string;
  cooldownMs: number; // between two moves of a player
}

/** How far a player is: the value "runner.<user id>" of the shared state. Only the referee writes it. */
export interface Runner {
  steps: number;
  rolled: number; // by the last move
  moves: number;
}

export class Game {
  room: Room | null = null;
  races: RoomData[] = []; // that wait for a second player
  won: Record<number, string> = {}; // by user id, once the race is over

  constructor(readonly parlor: Parlor, readonly stake: Stake, readonly changed: () => void) {}

  /** Opens a race. The entry fee leaves the wallet in the same step. */
  async create() {
    const { entryTokenId, entry } = this.stake;
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

  /** Calls the referee, the game's own server. It rolls, and writes where we are into the room. */
  async move() {
    await this.room!.call<Runner>("race.roll", {});
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
    const { entryTokenId, entry } = this.stake;
    const { items } = await this.parlor.rooms.list({ entryTokenId, maxEntry: entry, hasSeat: true, limit: 50 });
    this.races = items.filter((race) => race.metadata.game === "race");
    this.changed();
  }

  /** Finds the race in which this player was before the page was loaded again. */
  async comeBack() {
    const [room] = (await this.parlor.rooms.mine()).filter((race) => race.metadata.game === "race");
    if (room) this.enter(room);
  }

  /** Follows a room. Its fields and its shared state change in place: there is nothing to keep. */
  private enter(room: Room) {
    this.room = room;
    this.won = {};
    const lookAgain = () => this.look().catch(() => {}); // it can be done later
    room.on("change", () => this.changed());
    room.on("cancelled", lookAgain);
    room.on("finished", (event) => {
      for (const { userId, payout } of event.payouts) this.won[userId] = String(payout);
      return lookAgain();
    });
    this.changed();
  }

  /** The rules of the race, once the referee has begun it. */
  get race(): Rules | undefined {
    return this.room?.shared.value.race as Rules | undefined;
  }

  /** How far a player is. */
  runner(userId: number): Runner {
    const runner = this.room?.shared.value[`runner.${userId}`] as Runner | undefined;
    return runner ?? { steps: 0, rolled: 0, moves: 0 };
  }
}
