import type { CallOptions, ListenOptions, Page, PageQuery, Parlor } from "./v1.cjs";
interface components {
    schemas: {
        /**
         * @description Who sends scores
         * @enum {string}
         */
        Writer: "server" | "players" | "rooms";
        /** @description Orders equal scores. With the operator best it is the subscore of the best score */
        Subscore: {
            /**
             * @default desc
             * @enum {string}
             */
            order?: "desc" | "asc";
            /**
             * @default best
             * @enum {string}
             */
            operator?: "best" | "last" | "sum" | "min" | "max";
        };
        /** @description What scores of players must keep; players do not see it */
        ScoreRules: {
            min?: components["schemas"]["ScoreValue"];
            max?: components["schemas"]["ScoreValue"];
            maxStep?: components["schemas"]["ScoreValue"];
            minIntervalSeconds?: number;
            /** @description Of a player in a season; 0 for any number */
            maxSubmissions?: number;
            /** @description Each score needs a play of its own */
            play?: boolean;
            minPlaySeconds?: number;
            /** @description 3600 when 0 */
            maxPlaySeconds?: number;
        };
        /**
         * @description An exact decimal with at most the decimals of the leaderboard, below 2^52 in units of its last
         * digit
         * @example 1250
         */
        ScoreValue: number | string;
        /** @description `cron` with `timeZone`, or `everySeconds` */
        SeasonSchedule: {
            /**
             * @description Five fields. A local time that does not exist is the first instant after the gap, one that
             * comes twice the first
             * @example 0 0 * * 1
             */
            cron?: string;
            /**
             * @description Of the IANA database
             * @example Europe/Berlin
             */
            timeZone?: string;
            everySeconds?: number;
        };
        LeaderboardSettings: {
            /** @description Its key in the game */
            board: string;
            name: string;
            /**
             * @default desc
             * @enum {string}
             */
            order: "desc" | "asc";
            /**
             * @description What a further score does to an entry
             * @default best
             * @enum {string}
             */
            operator: "best" | "last" | "sum" | "min" | "max";
            /**
             * @description Fraction digits of scores
             * @default 0
             */
            decimals: number;
            subscore: components["schemas"]["Subscore"] | null;
            /**
             * @description With `shared`, equal entries have the same `place`: 1, 1, 3
             * @default first
             * @enum {string}
             */
            ties: "first" | "shared";
            writers: components["schemas"]["Writer"][];
            rules?: components["schemas"]["ScoreRules"] | null;
            /** @description Null: a season lasts until staff ends it */
            schedule: components["schemas"]["SeasonSchedule"] | null;
            /**
             * Format: date-time
             * @description Of the first season; now by default
             */
            startsAt?: string | null;
            /**
             * @description How long late results count in a season that is over
             * @default 0
             */
            graceSeconds: number;
            /**
             * @description Past seasons that are kept
             * @default 10
             */
            keepSeasons: number;
            /** @description Names by which players are grouped */
            segments: string[];
            /**
             * Format: int64
             * @description On all shards together
             */
            maxEntries: number | null;
            /** @default 1 */
            shards: number;
            league?: components["schemas"]["League"] | null;
            prizes?: components["schemas"]["Prizes"] | null;
            metadata: components["schemas"]["Metadata"];
        };
        /** @description The settings are those of the current season */
        Leaderboard: {
            gameId: components["schemas"]["Id"];
            /** @description Its key in the game */
            board: string;
            name: string;
            /**
             * @default desc
             * @enum {string}
             */
            order: "desc" | "asc";
            /**
             * @description What a further score does to an entry
             * @default best
             * @enum {string}
             */
            operator: "best" | "last" | "sum" | "min" | "max";
            /**
             * @description Fraction digits of scores
             * @default 0
             */
            decimals: number;
            subscore: components["schemas"]["Subscore"] | null;
            /**
             * @description With `shared`, equal entries have the same `place`: 1, 1, 3
             * @default first
             * @enum {string}
             */
            ties: "first" | "shared";
            writers: components["schemas"]["Writer"][];
            rules?: components["schemas"]["ScoreRules"] | null;
            /** @description Null: a season lasts until staff ends it */
            schedule: components["schemas"]["SeasonSchedule"] | null;
            /**
             * Format: date-time
             * @description Of the first season; now by default
             */
            startsAt?: string | null;
            /**
             * @description How long late results count in a season that is over
             * @default 0
             */
            graceSeconds: number;
            /**
             * @description Past seasons that are kept
             * @default 10
             */
            keepSeasons: number;
            /** @description Names by which players are grouped */
            segments: string[];
            /**
             * Format: int64
             * @description On all shards together
             */
            maxEntries: number | null;
            /** @default 1 */
            shards: number;
            league?: components["schemas"]["League"] | null;
            prizes?: components["schemas"]["Prizes"] | null;
            metadata: components["schemas"]["Metadata"];
            createdAt: components["schemas"]["Time"];
            season: components["schemas"]["Season"];
            /** @description The settings from the next season on, where they differ; for staff */
            next?: components["schemas"]["LeaderboardSettings"];
            /**
             * @description When the settings of `next` begin to hold; absent until staff ends a season that has no end
             */
            effectiveFrom?: components["schemas"]["Time"];
        };
        Season: {
            season: components["schemas"]["Id"];
            /**
             * @description HELD: sealed, and its prizes are in review. PAID: sealed, and its prizes are paid
             * @enum {string}
             */
            status: "UPCOMING" | "OPEN" | "CLOSING" | "SEALED" | "HELD" | "PAID";
            opensAt: components["schemas"]["Time"];
            /** @description Null: staff ends it */
            closesAt: (string & components["schemas"]["Time"]) | null;
            /**
             * Format: int64
             * @description That are not hidden
             */
            entries: number;
            /**
             * @description Whether the pool is set aside; false when the house is too poor, the prizes were voided, or
             * a season before this one was funded and ended before its time. Null: the season has no prizes
             */
            prizesFunded: boolean | null;
            /**
             * @description Who promised the prizes, and alone may end, approve and void the season when it is the
             * operator. Absent: the season has no prizes
             * @enum {string}
             */
            prizesPromisedBy?: "operator" | "server";
        };
        /**
         * @description Players of a tier are divided into cohorts. `promote` of the best of a cohort begin the next
         * season in the tier above, `relegate` of the last ones in the tier below. It needs `graceSeconds: 0`
         * @example {
         *       "size": 30,
         *       "tiers": [
         *         "bronze",
         *         "silver",
         *         "gold"
         *       ],
         *       "promote": 5,
         *       "relegate": 5
         *     }
         */
        League: {
            /** @description Players of a cohort */
            size: number;
            /** @description The lowest first; new players begin there */
            tiers: string[];
            promote: number;
            relegate: number;
        };
        Cohort: {
            season: components["schemas"]["Id"];
            tier: string;
            /**
             * Format: int64
             * @description Number within the tier of the season
             */
            cohort: number;
            /** @description All of the cohort, best first. `rank`, `place` and `percentile` are those within it */
            entries: components["schemas"]["BoardEntry"][];
            /** @description Players who rise */
            promote: number;
            /** @description Players who fall */
            relegate: number;
        };
        /**
         * @description The pool is set aside when a season opens. What is left of it when the prizes are paid returns
         * to where it came from
         * @example {
         *       "tokenId": "GOLD",
         *       "pool": 100,
         *       "from": "mint",
         *       "table": [
         *         {
         *           "fromPlace": 1,
         *           "toPlace": 1,
         *           "shareBps": 5000
         *         },
         *         {
         *           "fromPlace": 2,
         *           "toPlace": 6,
         *           "prize": 10
         *         }
         *       ],
         *       "reviewSeconds": 3600
         *     }
         */
        Prizes: {
            tokenId?: components["schemas"]["TokenCode"];
            pool?: components["schemas"]["AmountInput"];
            /**
             * @description `house` is the operator's. What a server mints counts against its `mintLimitPerDay`, on the
             * day on which the season opens
             * @default house
             * @enum {string}
             */
            from?: "house" | "mint";
            table: components["schemas"]["PrizeRow"][];
            /**
             * @description How long a sealed season is HELD before it is paid
             * @default 0
             */
            reviewSeconds?: number;
        };
        /**
         * @description What each of these places gets: `prize`, `shareBps` of the pool, or `quantity` of an asset
         * without a stock. Tied players divide what their places get
         */
        PrizeRow: {
            fromPlace: number;
            toPlace: number;
            prize?: components["schemas"]["AmountInput"];
            /** @description Basis points of the pool for each of the places */
            shareBps?: number;
            gameAssetId?: components["schemas"]["Id"];
            /**
             * Format: int64
             * @description Pieces of the asset; 1 by default
             */
            quantity?: number;
        };
        BoardEntry: {
            /**
             * Format: int64
             * @description In the strict order
             */
            rank: number;
            /**
             * Format: int64
             * @description The rank, or with `ties: shared` the same for equal entries
             */
            place: number;
            user: components["schemas"]["User"];
            /**
             * Format: double
             * @description An exact decimal
             */
            score: number;
            /**
             * Format: double
             * @description An exact decimal; null on a leaderboard without one
             */
            subscore: number | null;
            reachedAt: components["schemas"]["Time"];
            /** Format: int64 */
            submissions: number;
            /**
             * Format: double
             * @description Percent of the entries that are behind
             */
            percentile: number;
            /** @description Of the score that counts, up to 1 KiB */
            metadata: {
                [key: string]: unknown;
            };
            evidence: components["schemas"]["ScoreEvidence"] | null;
            /**
             * @example {
             *       "country": "DE"
             *     }
             */
            segments: {
                [key: string]: string;
            };
            /** @description For staff and the player, when true */
            hidden?: boolean;
        };
        ScoreEvidence: {
            roomId?: string;
            /** @description An https address */
            url?: string;
            digest?: string;
        };
        SubmitResult: {
            entry: components["schemas"]["BoardEntry"];
            /** @description Whether the score has changed the entry */
            changed: boolean;
            /** @description The entry before; null for a first score */
            previous: {
                /** Format: double */
                score: number;
                /** Format: double */
                subscore: number | null;
            } | null;
        };
        /** Format: int64 */
        Id: number;
        /**
         * Format: date-time
         * @example 2026-11-20T17:32:26.123Z
         */
        Time: string;
        /** @example GOLD */
        TokenCode: string;
        /** @description Data of the game, up to 4 KiB */
        Metadata: {
            [key: string]: unknown;
        };
        /**
         * @description An exact decimal, at most 2^53-1 minor units. A program sends a string (`"2.5"`), because a
         * double is not exact
         * @example 2.5
         */
        AmountInput: number | string;
        User: {
            id: components["schemas"]["Id"];
            username: string;
            avatar: string | null;
        };
        BoardState: {
            /** @enum {string} */
            mode: "snapshot";
            /**
             * Format: int64
             * @description Number of the current season
             */
            season: number;
            /**
             * Format: int64
             * @description Rises with each change of the first 100 entries of the season
             */
            version: number;
            /** @description Best first, as many as `top` said */
            entries: components["schemas"]["BoardEntry"][];
            /**
             * @description Entries around the player's own, best first; none while the player has no entry, and null
             * without `around`
             */
            me: components["schemas"]["BoardEntry"][] | null;
        };
    };
}
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
    evidence?: {
        roomId?: string;
        url?: string;
        digest?: string;
    };
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
export type BoardEvent = ({
    type: "changed";
} & BoardState) | {
    type: "seasonEnded" | "seasonStarted";
    board: string;
    season: Season;
}
/** It is watched no longer: there is no such leaderboard, or too many are watched. */
 | {
    type: "error";
    board: string;
    error: Error;
};
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
    around(board: string, query?: EntryQuery & {
        limit?: number;
    }): Promise<BoardEntry[]>;
    /** The entries of the player and of friends, best first. */
    friends(board: string, query?: EntryQuery & {
        limit?: number;
    }): Promise<BoardEntry[]>;
    /** The entry of one player, by default the own. Rejects with entry_not_found. */
    entry(board: string, userId?: number, query?: EntryQuery): Promise<BoardEntry>;
    /** The own cohort of a league. Rejects with entry_not_found before the first score of the season. */
    league(board: string, query?: {
        season?: number;
    }): Promise<Cohort>;
    /** The seasons that have begun and are kept, newest first. */
    seasons(board: string, query?: PageQuery): Promise<Page<Season>>;
    /**
     * Shows a leaderboard as it changes: calls `fn` with what it has now, and then with each change,
     * over lost connections too. Returns the function that ends it. A client watches up to eight.
     */
    watch(board: string, fn: (e: BoardEvent) => void, o?: WatchOptions): () => void;
}
/** Returns the leaderboards of a client, the same for each call: `const boards = createBoards(parlor)`. */
export declare function createBoards(parlor: Parlor): Boards;

export {};
