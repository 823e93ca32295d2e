// The game, without its pictures. Twelve stones lie on the table. Two players take one to three in turn,
// and the last stone wins the pot. The room's shared state has the table, so a reload loses nothing and
// both pages see the same end. The rules are in rules.ts.
import { init, ParlorError, type Room } from "@parlor-games/sdk";
import { allStones, end, readTable, settlement, take } from "./rules";

const { VITE_PARLOR_URL: url, VITE_PARLOR_GAME_ID: gameId } = import.meta.env as Record<string, string>;

const stake = "2.50";
const currency = "GOLD";
const patienceMs = 3000;

/** What a page shows. */
export interface View {
  readonly status: string; // what happens now, or why nothing does
  readonly balance: string;
  readonly stones: number; // that are left
  readonly mostToTake: number; // by this player, now: 0 to 3
  readonly canPlay: boolean;
  readonly canLeave: boolean;
}

export class Match {
  view: View = { status: "Connecting", balance: "", stones: allStones, mostToTake: 0, canPlay: false, canLeave: false };

  #parlor = init({ gameId: gameId!, baseUrl: url! });
  #room: Room | undefined;
  #token = 0; // id of the currency
  #now = 0; // what the player has
  #before: number | undefined; // what the player had before this match
  #payout = 0;
  #isBusy = true;
  #isReported = false;
  #note = "Connecting"; // stands in for what the room says
  #listeners = new Set<() => void>();

  constructor() {
    const parlor = this.#parlor;
    const slow = setTimeout(() => this.#say(`${url} does not answer. Is the node running? Trying again …`), patienceMs);
    parlor.on("state", (state) => {
      if (state === "online") this.#say("");
      else if (state !== "connecting" && state !== "closed") this.#say(`The connection is lost (${state}). Trying again …`);
    });
    parlor.on("error", (error) => this.#fail(error));
    parlor.on("balance", ({ tokenId, volume }) => {
      if (tokenId === currency) this.#now = volume;
      this.#update();
    });
    void this.#do(() => this.#begin().finally(() => clearTimeout(slow)));
  }

  /** Calls a function after every change of the view, until the function that it returns is called. */
  subscribe = (listener: () => void) => {
    this.#listeners.add(listener);
    return () => { this.#listeners.delete(listener); };
  };

  /** Takes a seat beside a player who waits, or waits for one. The stake leaves the wallet in the same step. */
  play = () => this.#do(async () => {
    this.#before = this.#now;
    this.#follow(await this.#parlor.rooms.quick({
      maxPlayers: 2, entryTokenId: this.#token, roomEntry: stake, autoStart: true, settlement,
    }));
  });

  take = async (stones: number) => {
    if (stones > this.view.mostToTake) return;
    await this.#do(() => take(this.#room!, this.#parlor.user!.id, stones));
  };

  /** Before the match the stake comes back. During the match it goes to the other player. */
  leave = () => this.#do(async () => { await this.#room?.leave(); });

  async #begin() {
    await this.#parlor.ready;
    const gold = await this.#parlor.wallet.balance(currency);
    this.#token = gold.id;
    this.#now = gold.volume;
    const [room] = await this.#parlor.rooms.mine(); // the match that goes on, after a reload
    if (room) this.#follow(room);
    this.#note = "";
  }

  #follow(room: Room) {
    this.#room = room;
    this.#isReported = false;
    this.#payout = 0;
    room.on("finished", ({ payouts }) => {
      this.#payout = payouts.find(({ userId }) => userId === this.#parlor.user?.id)?.payout ?? 0;
    });
    room.on("change", () => this.#update());
    this.#update();
  }

  #update() {
    const room = this.#room;
    const isGoing = room?.status === "STARTED";
    const { stones, next } = room ? readTable(room) : { stones: allStones, next: undefined };
    const isMyTurn = isGoing && stones > 0 && next === this.#parlor.user?.id;
    const isLaid = next !== undefined;
    this.view = {
      stones,
      status: this.#note || this.#describe(isMyTurn, isLaid),
      balance: `You have ${this.#now.toFixed(2)} ${currency}${
        this.#before === undefined ? "" : `, and had ${this.#before.toFixed(2)} before this match`}`,
      mostToTake: isMyTurn && !this.#isBusy ? Math.min(3, stones) : 0,
      canPlay: this.#token > 0 && !this.#isBusy && !isGoing && room?.status !== "CREATED",
      canLeave: isGoing || room?.status === "CREATED",
    };
    for (const listener of this.#listeners) listener();
    if (isGoing && stones <= 0 && !this.#isReported) {
      this.#isReported = true;
      void this.#do(() => end(room));
    }
  }

  #describe(isMyTurn: boolean, isLaid: boolean): string {
    switch (this.#room?.status) {
      case "CREATED": return "Waiting for the other player. Open this page in a private window too.";
      case "STARTED":
        if (!isLaid) return "Waiting for the game's server to lay the stones. Is it running?";
        return isMyTurn ? "Your turn: take one to three stones." : "The other player's turn.";
      case "CANCELLED": return "The match is off. Your stake is back.";
      case "DISPUTED": return "The two pages disagree who won. The stakes wait for the operator.";
      case "FINISHED": return this.#payout > 0 ? `You won ${this.#payout.toFixed(2)} ${currency}.` : "You lost.";
      default: return "Take one to three stones in turn. The last stone wins the pot.";
    }
  }

  /** Runs a call, and shows why it failed. */
  async #do(call: () => Promise<unknown>) {
    this.#isBusy = true;
    this.#note = this.#token ? "" : this.#note;
    this.#update();
    await call().catch((error: unknown) => this.#fail(error));
    this.#isBusy = false;
    this.#update();
  }

  #fail(error: unknown) {
    this.#say(error instanceof ParlorError ? `${error.code}: ${error.detail}` : String(error));
  }

  #say(note: string) {
    this.#note = note;
    this.#update();
  }
}
