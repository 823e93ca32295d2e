// Leaderboards, over the connection that the client has. Its own entry point: a game that does not
// need it does not load it.
import { need } from "./errors.js";
import type { components } from "./generated/schema.js";
import type { CallOptions, ListenOptions, Page, PageQuery, Parlor } from "./types.js";

type Schemas = components["schemas"];

/** A leaderboard: its settings and its current season. */
export type Leaderboard = Schemas["Leaderboard"];
/** A season of a leaderboard. */
export type Season = Schemas["Season"];
/** A player's entry. `rank` is the strict order; `place` is the same for equal entries where the board says so. */
export type BoardEntry = Schemas["BoardEntry"];
/** The players with whom a player shares a division of a league, best first. */
export type Cohort = Schemas["Cohort"];
/** What a score has changed. */
export type SubmitResult = Schemas["SubmitResult"];
/** The start of a play, where the rules of a leaderboard demand one for each score. */
export interface BoardPlay {
  /** For the score. */
  playId: string;
  startedAt: string;
  expiresAt: string;
}

/** A score of the player. Scores are numbers or decimal strings. */
export interface Score {
  score: number | string;
  subscore?: number | string;
  /** Of startPlay, where the rules demand it. */
  playId?: string;
  metadata?: Record<string, unknown>;
  evidence?: { roomId?: string; url?: string; digest?: string };
}

/** Whose entries. */
export interface EntryQuery {
  /** The number of a season; the current one by default. */
  season?: number;
  /** Only the players of a segment, such as `country:DE`. */
  segment?: string;
}

/** What is shown of a leaderboard that is watched. */
export interface WatchOptions extends ListenOptions {
  /** How many entries from the first on, 1 to 100; by default 10. */
  top?: number;
  /** How many entries around the player's own, 1 to 25; by default none. */
  around?: number;
}

/** What a leaderboard shows now. */
export interface BoardState extends Pick<Schemas["BoardState"], "season" | "entries"> {
  board: string;
  /** Around the player's own; empty while there is none, null where it was not asked for. */
  me: BoardEntry[] | null;
}

/** What happens on a leaderboard that is watched. */
export type BoardEvent =
  | ({ type: "changed" } & BoardState)
  | { type: "seasonEnded" | "seasonStarted"; board: string; season: Season }
  /** It is watched no longer: there is no such leaderboard, or too many are watched. */
  | { type: "error"; board: string; error: Error };

/** The leaderboards of the game. `board` is the key of one. */
export interface Boards {
  /** A page of the leaderboards of the game. */
  list(query?: PageQuery): Promise<Page<Leaderboard>>;
  /** Rejects with board_not_found, as every call with a `board`. */
  get(board: string): Promise<Leaderboard>;
  /**
   * Sends a score of the player, once, however often it is sent. Rejects with forbidden where only
   * the game's server may, and with score_rejected, season_closed, submissions_exhausted, play_used.
   */
  submit(board: string, score: number | string | Score, o?: CallOptions): Promise<SubmitResult>;
  /** Begins a play, which is good for one score. */
  startPlay(board: string, o?: CallOptions): Promise<BoardPlay>;
  /** A page of entries, best first. */
  entries(board: string, query?: EntryQuery & PageQuery): Promise<Page<BoardEntry>>;
  /** The entries around the player's own, 20 by default. Rejects with entry_not_found. */
  around(board: string, query?: EntryQuery & { limit?: number }): Promise<BoardEntry[]>;
  /** The entries of the player and of friends, best first. */
  friends(board: string, query?: EntryQuery & { limit?: number }): Promise<BoardEntry[]>;
  /** The entry of one player, by default the own. Rejects with entry_not_found. */
  entry(board: string, userId?: number, query?: EntryQuery): Promise<BoardEntry>;
  /** The own cohort of a league. Rejects with entry_not_found before the first score of the season. */
  league(board: string, query?: { season?: number }): Promise<Cohort>;
  /** The seasons that have begun and are kept, newest first. */
  seasons(board: string, query?: PageQuery): Promise<Page<Season>>;
  /**
   * Shows a leaderboard as it changes: calls `fn` with what it has now, and then with each change,
   * over lost connections too. Returns the function that ends it. A client watches up to eight.
   */
  watch(board: string, fn: (e: BoardEvent) => void, o?: WatchOptions): () => void;
}

interface Watcher {
  fn(e: BoardEvent): void;
  top: number;
  around: number;
}

/** The watchers of one leaderboard, which share a subscription. */
interface Watched {
  watchers: Set<Watcher>;
  state?: any;
  /** Rises with each request, so that only the reply to the last one counts. */
  asked: number;
}

const retryMs = 1000;

const known = new WeakMap<Parlor, Boards>();

/** Returns the leaderboards of a client, the same for each call: `const boards = createBoards(parlor)`. */
export function createBoards(parlor: Parlor): Boards {
  const boards = known.get(parlor) || makeBoards(parlor); // two would end each other's subscriptions
  known.set(parlor, boards);
  return boards;
}

function makeBoards(parlor: Parlor): Boards {
  const { get: call, send: tell, on } = parlor as any;
  need(call, "createBoards needs a client of this version");
  const watched = new Map<string, Watched>();

  const path = (board: string, rest = "") => {
    need(typeof board === "string" && board, "needs the key of a leaderboard");
    return `leaderboards/${encodeURIComponent(board)}${rest}`;
  };
  const read = (board: string, rest?: string, query?: object) => call(path(board, rest), { query });
  const items = async (board: string, rest: string, query?: object) => (await read(board, rest, query)).items;

  /** Calls the listeners of some watchers. One that throws stops nobody else. */
  function emit(watchers: Iterable<Watcher>, event: (w: Watcher) => BoardEvent) {
    for (const w of [...watchers]) {
      try {
        w.fn(event(w));
      } catch (e) {
        console.error(e);
      }
    }
  }

  /** What a watcher asked for: the others of the leaderboard may have asked for more. */
  const show = (watchers: Iterable<Watcher>, board: string, { season, entries, me }: any) =>
    emit(watchers, ({ top, around }) => (
      { type: "changed", board, season, entries: entries.slice(0, top), me: around ? me : null }
    ));

  async function subscribe(board: string) {
    const one = watched.get(board);
    if (!one || parlor.state !== "online") return; // it is asked for when there is a connection
    const ask = ++one.asked;
    const isLast = () => watched.get(board) === one && one.asked === ask;
    const most = (name: "top" | "around") => Math.max(...[...one.watchers].map((w) => w[name]));
    try {
      const state = await tell("board.subscribe", { board, top: most("top"), around: most("around") || undefined });
      if (isLast()) show(one.watchers, board, (one.state = state));
    } catch (error: any) {
      if (!isLast()) return;
      if (error.retryable) return void setTimeout(() => isLast() && subscribe(board), error.retryAfterMs || retryMs);
      watched.delete(board);
      emit(one.watchers, () => ({ type: "error", board, error }));
    }
  }

  on("state", (state: string) => state === "online" && [...watched.keys()].forEach(subscribe));
  on("board.changed", ({ board, data }: any) => {
    const one = watched.get(board);
    if (one?.state) show(one.watchers, board, (one.state = data)); // else the reply is on its way
  });
  for (const [type, name] of [["season_ended", "seasonEnded"], ["season_started", "seasonStarted"]] as const) {
    on(`board.${type}`, ({ board, data }: any) =>
      emit(watched.get(board)?.watchers || [], () => ({ type: name, board, season: data.season })));
  }

  return {
    list: (query) => call("leaderboards", { query }),
    get: (board) => read(board),
    submit: async (board, score, o) =>
      call(path(board, "/scores"), { ...o, body: typeof score === "object" ? score : { score } }),
    startPlay: async (board, o) => call(path(board, "/plays"), { ...o, method: "POST" }),
    entries: async (board, query) => read(board, "/entries", query),
    around: (board, query) => items(board, "/entries/around", query),
    friends: (board, query) => items(board, "/entries/friends", query),
    entry: async (board, userId = parlor.user?.id, query) => read(board, `/entries/${userId}`, query),
    league: async (board, query) => read(board, "/league", query),
    seasons: async (board, query) => read(board, "/seasons", query),
    watch(board, fn, { top = 10, around = 0, signal } = {}) {
      path(board);
      need(typeof fn === "function", "watch needs a function");
      const watcher: Watcher = { fn, top, around };
      const one: Watched = watched.get(board) || { watchers: new Set(), asked: 0 };
      const stop = () => {
        one.watchers.delete(watcher);
        if (one.watchers.size || watched.get(board) !== one) return;
        watched.delete(board);
        if (parlor.state === "online") tell("board.unsubscribe", { board }).catch(() => {});
      };
      if (signal?.aborted) return stop;
      signal?.addEventListener("abort", stop, { once: true });
      one.watchers.add(watcher);
      watched.set(board, one);
      subscribe(board);
      return stop;
    },
  };
}
