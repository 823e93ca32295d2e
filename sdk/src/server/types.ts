import type { ServiceEvents } from "../generated/events.js";
import type { components } from "../generated/schema.js";
import type { Result, RoomData, User } from "../types.js";

export type { Result, RoomData, User };

/** What a server hears of, by kind. `money` is every entry of the ledger but entries, refunds and payouts. */
export type Kind = "rooms" | "seats" | "tournaments" | "money";

/** The part of the game's rooms that a server has: the part `index`, from 0, of `of` parts, at most 64. */
export interface Share {
  of: number;
  index: number;
}

/** How far a server has heard each feed of the game, by the name of the feed. */
export type Positions = Record<string, string>;

/**
 * Keeps positions, so that a server goes on there after a restart. One store belongs to one share: two
 * servers never write the same one at a time.
 */
export interface PositionStore {
  /** Returns what was saved last; null or undefined for nothing. */
  load(): Promise<Positions | null | undefined> | Positions | null | undefined;
  /** Keeps all positions. It is called often, and never twice at a time. */
  save(positions: Positions): Promise<void> | void;
}

/** The options of server. */
export interface ServerOptions {
  /** The address of a node, or of the balancer of several. */
  url: string | undefined;
  /** A server key of the game. */
  key: string | undefined;
  /** What to hear of. By default `rooms`, and what the listeners need. */
  kinds?: Kind[];
  /** The part of the rooms that this server has, also as a text such as `"0/2"`: index and of. By default all. */
  share?: Share | string;
  /** By default they are kept in memory: a new process begins with its rooms as they are. See filePositions. */
  positions?: PositionStore;
  /** Used instead of the global one, such as the one of the package `ws`. Node 20 has none. */
  WebSocket?: any;
  /** Used instead of the global one. */
  fetch?: typeof fetch;
}

/** Where the connection stands. */
export type ServerState = "connecting" | "online" | "reconnecting" | "closed";

/** What happened to a room or to a tournament. `position` is opaque; `seq` counts the events of the room. */
export interface FeedEvent<T extends string, Data> {
  type: T;
  feed: string;
  position: string;
  seq: number;
  /** When it happened, ISO 8601. */
  time: string;
  data: Data;
}

/** An event of a room. */
export interface FeedRoomEvent<T extends string, Data> extends FeedEvent<T, Data> {
  roomId: string;
}

/** An event of a tournament. */
export interface FeedTournamentEvent<T extends string, Data> extends FeedEvent<T, Data> {
  tournamentId: number;
}

/** An entry of the ledger, as `parlor ledger export` writes it. */
export interface LedgerEvent {
  type: "ledger.entry";
  feed: "money";
  position: string;
  time: string;
  data: any;
}

type FeedRoomType =
  | "room.created" | "room.joined" | "room.left" | "room.ready" | "room.host_changed" | "room.started" | "room.result"
  | "room.disputed" | "room.finished" | "room.cancelled" | "room.rematch";
type FeedTournamentType = Exclude<Extract<keyof ServiceEvents, `tournament.${string}`>, "tournament.snapshot">;

/**
 * The events that a server hears, by type. Of the kind `rooms`: room.created, room.started, room.result, room.disputed,
 * room.finished, room.cancelled and room.rematch; of `seats`: room.joined, room.left, room.ready and
 * room.host_changed; of `tournaments`: those of tournaments. Their data is that of the players' events.
 */
export type ServerEvents = {
  [T in FeedRoomType]: FeedRoomEvent<T, ServiceEvents[T]>;
} & {
  [T in FeedTournamentType]: FeedTournamentEvent<T, ServiceEvents[T]>;
} & {
  /** An entry of the ledger, within a second: of the kind `money`. */
  "ledger.entry": LedgerEvent;
  /** Where the connection stands now. */
  state: ServerState;
  /**
   * What no call could report: a handler that threw, positions that could not be saved, a node that is
   * not there, the end of the server.
   */
  error: Error;
};

/** A question of a player with a seat in the room. Nobody stores it, so it comes at most once. */
export interface Call<Payload = any> {
  callId: string;
  roomId: string;
  /** The id of the player. The service has checked it. */
  from: number;
  op: string;
  /** What the page sent. Check it: a player can send anything. */
  payload: Payload;
}

/** A room, or its id. */
export type RoomRef = string | { roomId: string };

/** Options of a change of a room. */
export interface ChangeOptions {
  /**
   * The Idempotency-Key, at most 128 characters. By default each call makes one, and repeats it. Give one
   * for what happens once in a room where the handler may run again after a crash.
   */
  key?: string;
}

/** A change of the state that the players of a room share. */
export interface StateOptions extends ChangeOptions {
  /** The version that the change is for, 0 before the first change; by default the present one. */
  version?: number;
  /** Names to remove. */
  delete?: string[];
}

/** Options of a message. */
export interface MessageOptions {
  /** The ids of the players who receive it; all of the room by default. */
  to?: number[];
  /** Of such messages with this name that wait for a slow player, only the newest is kept. */
  latest?: boolean;
}

/** Which rooms. `limit` is at most 100. */
export interface ServerRoomQuery {
  status?: components["schemas"]["RoomStatus"];
  limit?: number;
  cursor?: string;
}

/** A page of rooms. `nextCursor` is null at the end. */
export interface RoomPage {
  items: RoomData[];
  nextCursor: string | null;
}

/**
 * The server of a game. Changes of rooms have keys and are repeated until they are answered, also on other
 * nodes, so that each happens once. What rejects is a ParlorError: the service refused it, or `closed`.
 */
export interface Server {
  /** Where the connection stands. */
  readonly state: ServerState;
  /** Resolves when the server hears events for the first time. Rejects with what ends it before. */
  readonly ready: Promise<void>;
  /**
   * Listens to events, and returns the function that ends it. Events of one room, calls in it and onRoom come one after
   * the other: the next one waits until the handler has returned, or its promise has settled. A handler that
   * throws is called again, up to 8 times with pauses; each error is reported.
   */
  on<T extends keyof ServerEvents>(type: T, fn: (event: ServerEvents[T]) => unknown): () => void;
  /**
   * Answers the calls of players with an operation: what the handler returns is the answer. A GameError is
   * shown to the player; any other error is reported, and the player sees the code `internal`.
   */
  onCall<Payload = any>(op: string, fn: (call: Call<Payload>) => unknown): void;
  /**
   * Called for each open room of the share, when the server begins without positions, and
   * after events were lost. The room has no shared state: read it with `room`.
   */
  onRoom(fn: (room: RoomData) => unknown): void;
  /** Reads the open rooms of the share, and calls the handler of onRoom for each. */
  reconcile(): Promise<void>;
  /** Begins the game in a room. Rejects with already_started, not_enough_players, room_closed. */
  start(room: RoomRef, o?: ChangeOptions): Promise<RoomData>;
  /**
   * Reports the result: the room ends and pays. Every player with a seat needs a place. Rejects with
   * not_started, result_conflict, room_closed.
   */
  finish(room: RoomRef, results: Result[], o?: ChangeOptions): Promise<RoomData>;
  /** Ends a room without a result: every stake comes back. Rejects with room_closed. */
  cancel(room: RoomRef, o?: ChangeOptions): Promise<RoomData>;
  /**
   * Sets values of the state that the players of a room share, and resolves with its new version. Rejects with
   * version_conflict when `version` is not the one that is there, and with limit_reached above 16 KiB.
   */
  setState(room: RoomRef, patch: Record<string, unknown>, o?: StateOptions): Promise<number>;
  /** Gives a player the turn for some seconds, 1 to 86,400; null ends the turns. Rejects with not_started, not_participant. */
  setTurn(room: RoomRef, userId: number | null, seconds?: number, o?: ChangeOptions): Promise<void>;
  /** Sends a message to the players of a room: at most once, not stored. Rejects with offline, timeout. */
  send(room: RoomRef, op: string, payload: unknown, o?: MessageOptions): Promise<void>;
  /** Sends a message to every page of a player, at most 4 KiB: at most once, not stored. Rejects with user_not_found. */
  message(userId: number, op: string, payload: unknown): Promise<void>;
  /** Reads a room with its shared state. Rejects with room_not_found. */
  room(room: RoomRef): Promise<RoomData>;
  /** Reads a page of the game's rooms in one status, private ones too, of every share and without their shared state. */
  rooms(query?: ServerRoomQuery): Promise<RoomPage>;
  /** Hears nothing more, waits for the handlers that run, 10 s at most, saves the positions, and ends the connection. */
  close(): Promise<void>;
}
