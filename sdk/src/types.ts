import type { Debug } from "./devtools/types.js";
import type { ParlorError } from "./errors.js";
import type { ServiceConnectionEvents, ServiceRoomEvents, ServiceUserEvents } from "./generated/events.js";
import type { components } from "./generated/schema.js";

type Schemas = components["schemas"];

/** A player as others see them. `avatar` is null when none is set. */
export type User = Schemas["User"];
/** A token with what the player can spend of it (`volume`, `amount`) and holds in stakes. */
export type Balance = Schemas["Balance"];
/** A line of the player's ledger. */
export type LedgerEntry = Schemas["LedgerEntry"];
/** A token that rooms and assets are paid with. */
export type EntryToken = Schemas["EntryToken"];
/** Something that the game sells. */
export type Asset = Schemas["Asset"];
/** An asset and how many of it the player owns. */
export type OwnedAsset = Schemas["OwnedAsset"];
/** What a purchase bought, what it cost and the balance after it. */
export type Purchase = Schemas["Purchase"];
/** A friend, a request or a blocked player. */
export type Friend = Schemas["Friend"];
/** The player's own account. */
export type Account = Schemas["Account"];
/** The place of a player in the result of a room. Places count from 1; equal places are a tie. */
export type Result = Schemas["Result"];
/** The fields of a room. */
export type RoomData = Schemas["Room"];
/** The settings of a new room. Amounts are numbers or decimal strings. */
export type CreateRoom = Omit<Partial<Schemas["CreateRoom"]>, "metadata"> & {
  maxPlayers: number;
  /** Anything that the players should know before they join. */
  metadata?: Record<string, unknown>;
};
/** What a save replaced. `savedAt` is ISO 8601, `size` bytes. */
export interface Saved {
  slot: string;
  version: number;
  savedAt: string;
  size: number;
  /** The state itself, where it was asked for. */
  state?: object;
}
/** A stored version of a slot. `intact` is false when it cannot be restored. */
export type Revision = Schemas["Revision"];

/** A page of a list. `nextCursor` is null at the end. */
export interface Page<T> {
  items: T[];
  nextCursor: string | null;
}

/** Which page of a list. `limit` is at most 100. */
export interface PageQuery {
  limit?: number;
  cursor?: string;
}

/** Which rooms. Without `status`: those that the player may join. */
export interface RoomQuery extends PageQuery {
  status?: Schemas["RoomStatus"];
  entryTokenId?: number;
  maxEntry?: string | number;
  hasSeat?: boolean;
}

/** The bounds that a player has set for stakes of a token. Null is none. */
export type TokenLimits = Schemas["TokenLimits"];

/** All bounds of a player. Until `excludedUntil` the player takes part in no paid room. */
export interface OwnLimits extends Page<TokenLimits> {
  excludedUntil: string | null;
}

/**
 * A change of the bounds for a token. Amounts are decimals of it. A member that is absent stays as it
 * is, null removes a bound.
 */
export interface Limits {
  tokenId: string;
  maxStake?: number | string | null;
  maxOpenRooms?: number | null;
  maxLoss24h?: number | string | null;
  excludedUntil?: string | null;
}

/** Options of a call. */
export interface CallOptions {
  /** Ends the call with the code `aborted`. What it changes may have happened. */
  signal?: AbortSignal;
  /** The Idempotency-Key. By default each call makes its own and repeats it. */
  idempotencyKey?: string;
}

/** Options of a listener. */
export interface ListenOptions {
  /** Removes the listener. */
  signal?: AbortSignal;
}

/** A purchase whose outcome is not known yet. */
export interface PendingPurchase {
  /** The Idempotency-Key of every attempt. */
  key: string;
  assetId: number;
  quantity: number;
  expectedPrice?: string | number;
  userId: number;
  /** When it was first sent, in ms of the service's clock. */
  at: number;
}

/** Where the connection stands. */
export type State = "idle" | "connecting" | "online" | "reconnecting" | "offline" | "closed";

/** Every event of a room has these beside its own data. */
export interface EventBase {
  /** The name of the event. */
  type: string;
  roomId: string;
  /** Its number in the room; absent where an event has none. */
  seq?: number;
  /** When it happened, ISO 8601. */
  at: string;
}

/** Events of the wire contract that a service may not send yet. */
interface ContractRoomEvents {
  connected: { userId: number };
  disconnected: { userId: number; graceUntil: string };
}

type WireRoomEvents = ServiceRoomEvents & Omit<ContractRoomEvents, keyof ServiceRoomEvents>;

/**
 * A message of another player. The game's server may send messages too, if it is made to: `from` is null
 * then, although its type is a number, so that a game without such messages need not ask.
 */
export type MessageOf<M> = {
  [K in keyof M & string]: { from: number; op: K; payload: M[K] };
}[keyof M & string];

/** The events of a room, by name. */
export type RoomEvents<M = any> = {
  [K in Exclude<keyof WireRoomEvents, "message" | "created">]: EventBase & WireRoomEvents[K];
} & {
  message: EventBase & MessageOf<M>;
  /** After every other event that changed a field of the room. */
  change: EventBase;
  /** Events were lost for good: the room's fields are current again, all at once. */
  resynced: EventBase & { room: Room<M> };
};

/** Any event of a room except change, which only repeats another. */
export type RoomEvent<M = any> = RoomEvents<M>[Exclude<keyof RoomEvents<M>, "change">];

/** The events of the client, by name. */
export interface ParlorEvents {
  /** Where the connection stands now. */
  state: State;
  /** `persistent` is false when the session will not survive the page. */
  user: { user: User; persistent: boolean };
  /** The player's balance of a token has changed. */
  balance: ServiceUserEvents["balance"];
  /** The player owns more or less of an asset. */
  asset: ServiceUserEvents["asset"];
  /** A prize of a leaderboard's season or of a tournament, after the balance or the asset that it changed. */
  prize: ServiceUserEvents["prize"];
  /** A slot was saved, perhaps by another page of the player. */
  progress: ServiceUserEvents["progress"];
  /** A match of the player, which waits in a room: `parlor.rooms.join(e.roomId)`. */
  match: ServiceUserEvents["match"];
  /** A message of the game's server to this player: at most once, also to every other page of the player. */
  message: { op: string; payload: any };
  /** The node ends soon. The client moves to another one by itself. */
  draining: ServiceConnectionEvents["draining"];
  /**
   * Events are late: the node has heard nothing from its store for `sinceMs`, at least 3 s. Calls may
   * fail meanwhile; a page may say that the game waits. `sinceMs` 0: it hears the store again, and
   * what was missed follows.
   */
  stale: ServiceConnectionEvents["stale"];
  /** What no call could report: a listener that threw, a refused message, a purchase that failed late. */
  error: ParlorError | Error;
}

/** State that all players of a room share. */
export interface Shared {
  /** The state now. Change it with `set` only. */
  readonly value: Record<string, unknown>;
  /**
   * Sets the members of `patch` and removes those of `delete`. Resolves with the new version. Where
   * somebody else was first, it is tried again on their state, three times; then it rejects with
   * version_conflict.
   */
  set(patch: Record<string, unknown>, o?: { delete?: string[] }): Promise<number>;
}

/** Options of a message. */
export interface SendOptions {
  /** The ids of the players who receive it; all others by default. */
  to?: number[];
  /** Drop it when it cannot be sent at once. */
  volatile?: boolean;
  /** Of such messages with this name that wait for a slow player, only the newest is kept. */
  latest?: boolean;
}

/** Options of a question to the game's server. */
export interface AskOptions {
  /** How long the server may take, 100 to 30,000 ms; by default 5,000. */
  timeoutMs?: number;
}

/**
 * A room whose fields change in place, in the order of events and before listeners run. The
 * promise of a call settles once the events that it caused have been heard.
 */
export interface Room<M = any> extends Omit<RoomData, "shared" | "turn"> {
  /** Adds a listener, and returns the function that removes it. */
  on<K extends keyof RoomEvents<M>>(event: K, fn: (e: RoomEvents<M>[K]) => void, o?: ListenOptions): () => void;
  /** Resolves with the next such event. Rejects with `aborted` or `closed`. */
  once<K extends keyof RoomEvents<M>>(event: K, o?: ListenOptions): Promise<RoomEvents<M>[K]>;
  /** Iterates over events from now on. At most 1,000 wait to be read; then it throws `queue_full`. */
  events(o?: ListenOptions): AsyncIterable<RoomEvent<M>>;
  /** Says whether the player is ready. Rejects with already_started, not_participant, room_closed. */
  setReady(ready?: boolean): Promise<Room<M>>;
  /** Starts the game, for the host. Rejects with not_host, not_enough_players, already_started, room_closed. */
  start(): Promise<Room<M>>;
  /** Gives up the seat. Before the start the stake comes back, after it the seat is forfeited. Rejects with room_disputed. */
  leave(): Promise<Room<M>>;
  /** Ends the room before the start, for the host. Every stake comes back. Rejects with not_host, already_started. */
  cancel(): Promise<Room<M>>;
  /**
   * In a consensus room: reports what this player saw, once. The room is finished when all players
   * report the same places, and disputed when they do not. Rejects with not_started, result_conflict.
   */
  finish(results: Result[]): Promise<Room<M>>;
  /** Opens a room with the same settings and reserved seats, or joins the one that is open. */
  rematch(): Promise<Room<M>>;
  /** Removes a player from the room, for the host. Rejects with not_host, not_participant. */
  kick(userId: number, o?: { ban?: boolean }): Promise<Room<M>>;
  /** Makes another player the host. Rejects with not_host, not_participant. */
  makeHost(userId: number): Promise<Room<M>>;
  /**
   * Sends a message to the other players: not stored, at most once, in order. While there is no
   * connection it waits, 10 s at most: then it is dropped, and the client's event `error` has a
   * `timeout`. Throws payload_too_large above 16 KiB, and queue_full when 64 messages or 256 KB wait.
   */
  send<K extends keyof M & string>(op: K, payload: M[K], o?: SendOptions): void;
  /**
   * Asks the game's server, and resolves with its answer: at most once, in order, never stored. Rejects with
   * game_error when the server refuses, with its reason in `data.gameCode`; with no_server when none listens;
   * with server_timeout when it does not answer in time. While there is no connection it waits, 10 s at most.
   */
  call<Answer = any>(op: string, payload: unknown, o?: AskOptions): Promise<Answer>;
  /**
   * For the host: gives a player the turn for some seconds, null ends the turns. At the deadline the
   * service gives it to the next player. Rejects with not_host, not_started, not_participant.
   */
  setTurn(userId: number | null, seconds?: number): Promise<Room<M>>;
  /** Whose turn it is; absent or null for nobody. Compare the deadline with `parlor.time()`. */
  readonly turn?: { userId: number; deadline: string } | null;
  /** State that all players of the room share. */
  readonly shared: Shared;
  /**
   * Stops following the room, without leaving it. The object keeps the last state and hears nothing
   * more: `once` rejects with `closed` and `events` ends. `rooms.get` follows the room again, with a new
   * object. A client follows up to 16 rooms.
   */
  unwatch(): void;
}

/** Finds, opens and joins rooms. All of a client's calls for one room give the same object. */
export interface Rooms<M = any> {
  /** Opens a room and takes its entry. Rejects with insufficient_funds, invalid_amount, token_not_found. */
  create(input: CreateRoom, o?: CallOptions): Promise<Room<M>>;
  /** Takes a seat. Rejects with room_full, room_closed, already_started, insufficient_funds, banned. */
  join(room: string | { code: string }, o?: CallOptions): Promise<Room<M>>;
  /** Follows a room without a seat, or one that the player has. Rejects with room_not_found. */
  get(room: string | { code: string }): Promise<Room<M>>;
  /** A page of rooms, newest first: by default those that the player may join. */
  list(query?: RoomQuery): Promise<Page<RoomData>>;
  /** The rooms that have not ended and in which the player has a seat. */
  mine(): Promise<Room<M>[]>;
  /** Joins an open room with the same `maxPlayers`, entry and `settlement`, else opens one. */
  quick(input: CreateRoom, o?: CallOptions): Promise<Room<M>>;
}

/** The player's saves. A slot's name has 1 to 64 characters of A-Z, a-z, 0-9, `_`, `.` and `-`. */
export interface Progress {
  /**
   * Makes `state` the newest version. Calls within 500 ms are one save, the newest. It waits in
   * storage while there is no connection, also for the next page. When somebody else saved
   * meanwhile, `merge` gives the state to save instead; without it the call rejects with
   * version_conflict and `data: {mine, theirs, version}`.
   */
  save<T extends object>(
    slot: string, state: T, o?: { merge?: (mine: T, theirs: T) => T | Promise<T> },
  ): Promise<Saved>;
  /** Resolves with null for a slot that was never saved. */
  load(slot: string): Promise<(Saved & { state: any }) | null>;
  /** Every slot of the player with its newest version, without the states. */
  list(): Promise<Saved[]>;
  /** The last five versions, newest first. */
  history(slot: string): Promise<Revision[]>;
  /** Makes an older state the newest version. */
  restore(slot: string, version: number): Promise<Saved>;
}

/** The player's money. Amounts are exact: `volume` as number, `amount` in minor units as string. */
export interface Wallet {
  /** What the player has of every token of the game. */
  balances(): Promise<Balance[]>;
  /** Rejects with token_not_found. */
  balance(tokenId: string): Promise<Balance>;
  /** A page of the player's own bookings, newest first. */
  ledger(query?: PageQuery & { tokenId?: string }): Promise<Page<LedgerEntry>>;
  /**
   * Returns `"2.50 Gold"`. A number is a decimal of the token, such as `volume`; a string without a
   * point is minor units, such as `amount`. Throws token_not_found before the token was seen.
   */
  format(amount: number | string, tokenId: string): string;
  /** Reads the player's own bounds, of each token that they have. */
  limits(): Promise<OwnLimits>;
  /** Tightens a bound at once, or loosens it after 24 h. Rejects with token_not_found, self_excluded. */
  limits(change: Limits): Promise<TokenLimits>;
}

/** What the game sells. */
export interface Store {
  /** A page of what the game sells. */
  assets(query?: PageQuery): Promise<Page<Asset>>;
  /**
   * Buys an asset, once, however often it is sent. Rejects with insufficient_funds, price_changed,
   * sold_out, already_owned: then nothing was bought. Rejects with offline, timeout or
   * outcome_unknown when that is not known: then `pending` lists it until it is settled.
   */
  buy(assetId: number, o?: { quantity?: number; expectedPrice?: number | string }): Promise<Purchase>;
  /** A page of what the player has bought. */
  owned(query?: PageQuery): Promise<Page<OwnedAsset>>;
  /** The purchases whose outcome is not known yet. */
  pending(): Promise<PendingPurchase[]>;
}

/** Friends, requests and blocked players. */
export interface Friends {
  /** A page of friends, open requests and blocked players. */
  list(query?: PageQuery): Promise<Page<Friend>>;
  /** Asks for friendship, or accepts it. */
  add(userId: number): Promise<Friend>;
  /** Ends a friendship, declines a request, lifts a block. */
  remove(userId: number): Promise<void>;
  /** Blocks a player and ends the friendship. Later requests of that player have no effect. */
  block(userId: number): Promise<Friend>;
}

/** The player's own account. */
export interface OwnAccount {
  /** Changes the player's name, 1 to 32 characters. */
  rename(username: string): Promise<Account>;
  /** An https address, or null for none. */
  avatar(url: string | null): Promise<Account>;
  /** An access token for the game's own server, to which `GET /api/v1/me` tells whose it is. */
  token(): Promise<string>;
  /** Makes a guest a lasting account. Rejects with already_linked. */
  link(proof: { externalToken: string } | { deviceSecret: string }): Promise<Account>;
  /** Ends the session on this device and closes the client. A guest cannot come back. */
  signOut(): Promise<void>;
  /** Deletes the account for good and closes the client. Rejects with money_held. */
  remove(): Promise<void>;
}

/** A player of a game, signed in and connected. */
export interface Parlor<M = any> {
  /** Signed in and online once. Rejects only for what will not mend. */
  readonly ready: Promise<Parlor<M>>;
  /** Where the connection stands; the event `state` tells each change. */
  readonly state: State;
  /** The player, null until the first sign-in has ended. */
  readonly user: User | null;
  /** Adds a listener, and returns the function that removes it. */
  on<K extends keyof ParlorEvents>(event: K, fn: (e: ParlorEvents[K]) => void, o?: ListenOptions): () => void;
  /** Finds, opens and joins rooms. */
  readonly rooms: Rooms<M>;
  /** The player's saves. */
  readonly progress: Progress;
  /** The player's money. */
  readonly wallet: Wallet;
  /** What the game sells, and what the player owns. */
  readonly store: Store;
  /** Friends, requests and blocked players. */
  readonly friends: Friends;
  /** The player's own account. */
  readonly account: OwnAccount;
  /** The devtools, with `debug: true` and once their script is loaded. */
  readonly debug?: Debug;
  /** Reads the player's own account; `kind` says by what the player can come back. */
  me(): Promise<Account>;
  /** The service's clock, in ms since 1970. */
  time(): number;
  /** Ends the connection. Unfinished calls reject with `closed`. */
  close(): void;
}

/** The options of init. */
export interface Options {
  /** The id of the game. `parlor dev` has game 1. */
  gameId: string | number;
  /** The address of the service. By default the origin of the SDK's script, else that of the page. */
  baseUrl?: string;
  /** Returns an access token of the game's own sign-in. Called again when one expires. */
  getToken?: () => Promise<string>;
  /** The name of a new guest, 1 to 32 characters. */
  username?: string;
  /** Where the session is kept; false keeps it in memory. */
  storage?: Storage | false;
  /** Loads the devtools from the service first, as `?parlorDebug` in the page's address does. */
  debug?: boolean;
  /** Used instead of the global one. */
  fetch?: typeof fetch;
  /** Used instead of the global one, such as `ws` in Node 20, or the one of a binary lane. */
  WebSocket?: any;
}
