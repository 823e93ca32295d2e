// Tournaments, over the connection that the client has. Its own entry point: a game that does not
// need it does not load it.
import { need } from "./errors.js";
import type { components } from "./generated/schema.js";
import type { CallOptions, ListenOptions, Page, PageQuery, Parlor } from "./types.js";

type Schemas = components["schemas"];

/** The stage of a tournament. */
export type TournamentStatus = Schemas["TournamentStatus"];
/** A tournament. Members that its format does not have are absent. Times are ISO 8601. */
export type Tournament = Schemas["Tournament"];
/** A player of a tournament. */
export type Entrant = Schemas["Entrant"];
/** A match of two players. `matchId` is `r2m5`. */
export type Match = Schemas["Match"];
/** Where a player stands. */
export type Standing = Schemas["Standing"];
/** A play of a score tournament, whose score goes to the leaderboard `tour-<tournamentId>` with its `playId`. */
export type Attempt = Schemas["Attempt"];
/** A match of the player, which waits in a room: `parlor.rooms.join(e.roomId)`. */
export type OwnMatch = Schemas["UserMatchData"];

/** Which tournaments. */
export interface TournamentQuery extends PageQuery {
  status?: TournamentStatus;
}

/** An event of a tournament, by its name on the wire without `tournament.`; `data` is as in its contract. */
export interface TournamentEvent {
  type: "opened" | "joined" | "left" | "checked_in" | "started" | "round_started" | "match_ready" | "match_decided"
    | "settled" | "cancelled";
  tournamentId: number;
  seq: number;
  at: string;
  data: any;
}

/** What a follower gets: the whole at first, and where events are lost for good, and then each event. */
export type Followed =
  | { type: "snapshot"; tournamentId: number; tournament: Tournament }
  | TournamentEvent
  /** It is followed no longer. */
  | { type: "error"; tournamentId: number; error: Error };

/** The tournaments of the game. */
export interface Tournaments {
  /** A page of the tournaments of the game, newest first. */
  list(query?: TournamentQuery): Promise<Page<Tournament>>;
  /** Rejects with tournament_not_found, as every call with an id. */
  get(tournamentId: number): Promise<Tournament>;
  /** A page of the players who have joined. */
  entrants(tournamentId: number, query?: PageQuery): Promise<Page<Entrant>>;
  /** A page of the matches, of one round or of all. */
  matches(tournamentId: number, query?: PageQuery & { round?: number }): Promise<Page<Match>>;
  /** A page of the standings, best first. */
  standings(tournamentId: number, query?: PageQuery): Promise<Page<Standing>>;
  /** Takes the entry fee. Rejects with insufficient_funds, tournament_full, registration_closed. */
  join(tournamentId: number, o?: CallOptions): Promise<Tournament>;
  /** Before the start the fee comes back. Rejects with not_entrant, tournament_closed. */
  leave(tournamentId: number, o?: CallOptions): Promise<Tournament>;
  /** Rejects with not_entrant, check_in_closed. */
  checkIn(tournamentId: number, o?: CallOptions): Promise<Tournament>;
  /** Begins an attempt of a score tournament. Rejects with attempts_exhausted, tournament_closed. */
  startAttempt(tournamentId: number, o?: CallOptions): Promise<Attempt>;
  /**
   * Calls `fn` with every event of a tournament, in order and none lost, over lost connections too.
   * Returns the function that ends it.
   */
  follow(tournamentId: number, fn: (e: Followed) => void, o?: ListenOptions): () => void;
  /** Calls `fn` when a match of the player is ready. Returns the function that removes it. */
  onMatch(fn: (e: OwnMatch) => void, o?: ListenOptions): () => void;
}

interface Follow {
  listeners: Set<(e: Followed) => void>;
  position?: string;
  seq: number;
  isAsking?: boolean;
  /** Whether a listener waits for the whole. */
  needsSnapshot?: boolean;
}

const retryMs = 1000;

/** Makes the tournaments of a client: `const tournaments = createTournaments(parlor)`. */
export function createTournaments(parlor: Parlor): Tournaments {
  const { get: call, send: tell, on } = parlor as any;
  need(call, "createTournaments needs a client of this version");
  const followed = new Map<number, Follow>();

  const path = (id: number, rest = "") => {
    need(Number.isInteger(id) && id > 0, "needs the id of a tournament");
    return `tournaments/${id}${rest}`;
  };
  const read = async (id: number, rest?: string, query?: object) => call(path(id, rest), { query });
  const act = async (id: number, verb: string, o?: CallOptions) => call(path(id, `/${verb}`), { ...o, method: "POST" });

  /** Calls listeners. One that throws stops nobody else. */
  function emit(f: Follow, event: Followed) {
    for (const fn of [...f.listeners]) {
      try {
        fn(event);
      } catch (e) {
        console.error(e);
      }
    }
  }

  /**
   * Shows a snapshot, also one with a lower number: the service sends none that is older than what it
   * sent before, so the events above that number are undone.
   */
  function showSnapshot(f: Follow, tournamentId: number, tournament: Tournament) {
    f.seq = tournament.seq;
    f.position = tournament.position;
    emit(f, { type: "snapshot", tournamentId, tournament });
  }

  /** Subscribes from the last event on: what was missed follows the reply. */
  async function subscribe(tournamentId: number) {
    const f = followed.get(tournamentId);
    if (!f || f.isAsking || parlor.state !== "online") return; // it is asked for when there is a connection
    f.isAsking = true;
    const isWhole = f.needsSnapshot;
    f.needsSnapshot = false; // a listener that is added from here on needs another one
    try {
      const after = isWhole ? undefined : f.position;
      const { tournament } = await tell("tournament.subscribe", { tournamentId, after });
      f.isAsking = false;
      if (followed.get(tournamentId) !== f) return;
      if (tournament) showSnapshot(f, tournamentId, tournament);
      if (f.needsSnapshot) subscribe(tournamentId);
    } catch (error: any) {
      f.isAsking = false;
      f.needsSnapshot ||= isWhole;
      if (followed.get(tournamentId) !== f) return;
      if (error.retryable) return void setTimeout(subscribe, error.retryAfterMs || retryMs, tournamentId);
      followed.delete(tournamentId);
      emit(f, { type: "error", tournamentId, error });
    }
  }

  function onEvent({ type, tournamentId, seq, position, at, data }: any) {
    const f = followed.get(tournamentId);
    if (!f) return;
    const name = type.slice("tournament.".length);
    if (name === "snapshot") return showSnapshot(f, tournamentId, data.tournament);
    if (seq <= f.seq) return; // heard already
    if (f.position && seq > f.seq + 1) return void subscribe(tournamentId); // a hole: everything after the position
    Object.assign(f, { seq, position });
    emit(f, { type: name, tournamentId, seq, at, data });
  }

  on("state", (state: string) => state === "online" && [...followed.keys()].forEach(subscribe));
  for (const name of ["snapshot", "opened", "joined", "left", "checked_in", "started", "round_started", "match_ready",
    "match_decided", "settled", "cancelled"]) on(`tournament.${name}`, onEvent);

  return {
    list: (query) => call("tournaments", { query }),
    get: (id) => read(id),
    entrants: (id, query) => read(id, "/entrants", query),
    matches: (id, query) => read(id, "/matches", query),
    standings: (id, query) => read(id, "/standings", query),
    join: (id, o) => act(id, "join", o),
    leave: (id, o) => act(id, "leave", o),
    checkIn: (id, o) => act(id, "check-in", o),
    startAttempt: (id, o) => act(id, "attempts", o),
    follow(id, fn, { signal } = {}) {
      path(id);
      need(typeof fn === "function", "follow needs a function");
      const f: Follow = followed.get(id) || { listeners: new Set(), seq: 0 };
      const listener = (e: Followed) => fn(e);
      const stop = () => {
        f.listeners.delete(listener);
        if (f.listeners.size || followed.get(id) !== f) return;
        followed.delete(id);
        if (parlor.state === "online") tell("tournament.unsubscribe", { tournamentId: id }).catch(() => {});
      };
      if (signal?.aborted) return stop;
      signal?.addEventListener("abort", stop, { once: true });
      if (f.listeners.size) f.needsSnapshot = true; // the new listener begins with the whole
      f.listeners.add(listener);
      followed.set(id, f);
      subscribe(id);
      return stop;
    },
    onMatch: (fn, o) => on("match", fn, o),
  };
}
