import type { CallOptions, ListenOptions, Page, PageQuery, Parlor } from "./v1.mjs";
interface components {
    schemas: {
        /**
         * @description Who sends scores to a tournament
         * @enum {string}
         */
        TournamentWriter: "server" | "players";
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
        /** @enum {string} */
        TournamentStatus: "ANNOUNCED" | "REGISTRATION" | "CHECK_IN" | "RUNNING" | "SETTLING" | "FINISHED" | "CANCELLING" | "CANCELLED";
        /** @description Members that the format does not have are absent */
        Tournament: {
            /** @description Unique within the game */
            tournamentId: components["schemas"]["Id"];
            gameId: components["schemas"]["Id"];
            name: string;
            /** @enum {string} */
            format: "score" | "single_elimination" | "swiss" | "round_robin";
            /**
             * Format: int64
             * @description Null: no fee and no prize
             */
            entryTokenId: number | null;
            /** @description null without a fee and a prize */
            entryToken: components["schemas"]["EntryToken"] | null;
            entryFee: components["schemas"]["Amount"];
            entryFeeAmount: components["schemas"]["Units"];
            addedPrize: {
                amount: components["schemas"]["Amount"];
                /** @enum {string} */
                from: "house" | "mint";
            } | null;
            addedPrizeAmount: components["schemas"]["Units"];
            /** @description The fees and the added prize */
            pot: components["schemas"]["Amount"];
            potAmount: components["schemas"]["Units"];
            /** @description What the operator gets; 0 before SETTLING */
            rake: components["schemas"]["Amount"];
            rakeAmount: components["schemas"]["Units"];
            rakeBps: number;
            /** @description Basis points by place, 10,000 together */
            payout: number[];
            minEntrants: number;
            maxEntrants: number;
            registrationOpensAt: components["schemas"]["Time"];
            /** @description Null: nobody has to check in */
            checkInOpensAt: (string & components["schemas"]["Time"]) | null;
            startsAt: components["schemas"]["Time"];
            endsAt: (string & components["schemas"]["Time"]) | null;
            board?: {
                /** @enum {string} */
                order: "desc" | "asc";
                /** @enum {string} */
                operator: "best" | "last" | "sum" | "min" | "max";
                decimals: number;
                graceSeconds: number;
                /** @description Who sends scores; absent in tournaments of older builds */
                writers?: components["schemas"]["TournamentWriter"][];
                rules?: components["schemas"]["ScoreRules"];
            };
            room?: {
                maxPlayers: number;
                metadata: components["schemas"]["Metadata"];
                /** @enum {string} */
                settlement: "server" | "consensus";
            };
            /** @description Of score: plays of each player */
            attempts?: number;
            /** @description Of Swiss: by the number of entrants by default */
            rounds?: number;
            /** @description Of Swiss: players may join until this round has ended */
            lateJoinRounds?: number;
            /**
             * @description With matches: the order of the draw; random by default
             * @enum {string}
             */
            seeding?: "random" | "joined";
            /** @description With matches: to take one's seat; 120 by default */
            noShowSeconds?: number;
            /** @description With matches; that of the game's rooms by default */
            matchTimeoutSeconds?: number;
            /**
             * @description With matches: replay (up to 3 attempts, then the higher seed; with consensus by lot), the
             * higher seed, or half a point each; replay in a bracket by default, else half. A draw is what all players
             * reported, or the server said
             * @enum {string}
             */
            draws?: "replay" | "seed" | "half";
            /**
             * @description With matches that nobody decides: both players are out with their fees back; it is played
             * again (up to 3 attempts, then refund); or both lose it. Refund by default
             * @enum {string}
             */
            disputes?: "refund" | "replay" | "void";
            /** @description With matches: how long a dispute waits for staff; 86400 by default */
            disputeSeconds?: number;
            /**
             * @description With a check-in: the fee of who does not check in; refund by default
             * @enum {string}
             */
            noCheckIn?: "refund" | "forfeit";
            /** @enum {string} */
            visibility: "public" | "unlisted";
            metadata: components["schemas"]["Metadata"];
            status: components["schemas"]["TournamentStatus"];
            /**
             * @description Why it was cancelled
             * @enum {string|null}
             */
            reason: "operator" | "server" | "undersubscribed" | "expired" | "unplayed" | null;
            /**
             * Format: int64
             * @description Rises by one with every change
             */
            version: number;
            /**
             * Format: int64
             * @description The number of the last event
             */
            seq: number;
            /**
             * @description Of the last event; opaque
             * @example 12-00abc123
             */
            position: string;
            entrants: number;
            checkedIn: number;
            /** @description 0 before the first */
            round: number;
            createdAt: components["schemas"]["Time"];
            startedAt: (string & components["schemas"]["Time"]) | null;
            /** @description When it was finished or cancelled */
            endedAt: (string & components["schemas"]["Time"]) | null;
        };
        Entrant: {
            user: components["schemas"]["User"];
            /** @description null before the draw */
            seed: number | null;
            joinedAt: components["schemas"]["Time"];
            checkedInAt: (string & components["schemas"]["Time"]) | null;
            /**
             * @description Nobody is playing once the tournament is over; place and payout say how it went
             * @enum {string}
             */
            status: "joined" | "checked_in" | "playing" | "out" | "disqualified";
            /**
             * @description Null before SETTLING and for who never played; of a score tournament only of those who are
             * paid
             */
            place: number | null;
            /**
             * Format: double
             * @description null before SETTLING
             */
            payout: number | null;
            /** @description Minor units */
            amount: string | null;
        };
        Match: {
            /** @example r2m5 */
            matchId: string;
            round: number;
            /** @description The better seed first; one of a bye */
            players: components["schemas"]["MatchPlayer"][];
            /** @enum {string} */
            status: "WAITING" | "READY" | "PLAYING" | "DECIDED";
            /** Format: uuid */
            roomId: string | null;
            /** @description From 1, higher when a draw is played again; 0 before the first room */
            attempt: number;
            /**
             * Format: int64
             * @description Null: not decided, a draw, or nobody came
             */
            winnerId: number | null;
            /** @enum {string|null} */
            reason: "played" | "walkover" | "double_forfeit" | "bye" | "disqualified" | "resolved" | "refunded" | null;
            /** @description To take one's seat, then of the match */
            deadline: (string & components["schemas"]["Time"]) | null;
        };
        MatchPlayer: {
            userId: components["schemas"]["Id"];
            seed: number;
        };
        Standing: {
            /** @description Equal places are a tie */
            place: number;
            user: components["schemas"]["User"];
            /**
             * Format: double
             * @description Of a score tournament: the score
             */
            points: number;
            /** @description Byes and walkovers too */
            wins: number;
            draws: number;
            losses: number;
            /** @description What orders players with equal points, as far as the format has it */
            tiebreaks: {
                /** Format: double */
                buchholz?: number;
                /** Format: double */
                directEncounter?: number;
                /** Format: double */
                sonnebornBerger?: number;
                seed?: number;
            };
            /**
             * Format: double
             * @description null before SETTLING
             */
            payout: number | null;
            /** @description Minor units */
            amount: string | null;
        };
        Attempt: {
            playId: string;
            startedAt: components["schemas"]["Time"];
            expiresAt: components["schemas"]["Time"];
            attemptsLeft: number;
        };
        /** Format: int64 */
        Id: number;
        /** Format: uuid */
        RoomId: string;
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
         * @description Minor units
         * @example 2500000
         */
        Units: string;
        /**
         * Format: double
         * @description Exact decimal, printed without rounding or exponent, for people. A program uses the string in
         * minor units beside it (`…Amount`), because a double is not exact
         * @example 2.5
         */
        Amount: number;
        User: {
            id: components["schemas"]["Id"];
            username: string;
            avatar: string | null;
        };
        TokenMetadata: {
            /** @description Hexadecimal */
            assetName: string;
            /** @description Hexadecimal */
            policyId: string;
            decimals: string;
        };
        EntryToken: {
            id: components["schemas"]["Id"];
            tokenId: components["schemas"]["TokenCode"];
            tokenName: string;
            logoUrl: string | null;
            metadata: components["schemas"]["TokenMetadata"];
            /** @description Units in existence: in the player's game, and summed over all games for an operator */
            volume: components["schemas"]["Amount"];
        };
        UserMatchData: {
            tournamentId: components["schemas"]["Id"];
            matchId: string;
            roomId: components["schemas"]["RoomId"];
            deadline: components["schemas"]["Time"];
        };
    };
}
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
    type: "opened" | "joined" | "left" | "checked_in" | "started" | "round_started" | "match_ready" | "match_decided" | "settled" | "cancelled";
    tournamentId: number;
    seq: number;
    at: string;
    data: any;
}
/** What a follower gets: the whole at first, and where events are lost for good, and then each event. */
export type Followed = {
    type: "snapshot";
    tournamentId: number;
    tournament: Tournament;
} | TournamentEvent
/** It is followed no longer. */
 | {
    type: "error";
    tournamentId: number;
    error: Error;
};
/** The tournaments of the game. */
export interface Tournaments {
    /** A page of the tournaments of the game, newest first. */
    list(query?: TournamentQuery): Promise<Page<Tournament>>;
    /** Rejects with tournament_not_found, as every call with an id. */
    get(tournamentId: number): Promise<Tournament>;
    /** A page of the players who have joined. */
    entrants(tournamentId: number, query?: PageQuery): Promise<Page<Entrant>>;
    /** A page of the matches, of one round or of all. */
    matches(tournamentId: number, query?: PageQuery & {
        round?: number;
    }): Promise<Page<Match>>;
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
/** Makes the tournaments of a client: `const tournaments = createTournaments(parlor)`. */
export declare function createTournaments(parlor: Parlor): Tournaments;

export {};
