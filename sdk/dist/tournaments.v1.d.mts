/** The codes of errors that the service reports. A code is never renamed. */
type ServiceCode = 
/** 400: The body is not valid JSON */
"invalid_json"
/** 400: The request is not valid */
 | "invalid_request"
/** 400: The amount is not valid */
 | "invalid_amount"
/** 400: An Idempotency-Key header is required */
 | "idempotency_key_required"
/** 401: Authentication is required */
 | "unauthenticated"
/** 401: The access token has expired */
 | "token_expired"
/** 401: The refresh token was used before; its whole family is revoked */
 | "refresh_reused"
/** 402: The balance is too small */
 | "insufficient_funds"
/** 403: This caller may not do this */
 | "forbidden"
/** 403: Only the host of the room may do this */
 | "not_host"
/** 403: The player is not seated in the room */
 | "not_participant"
/** 403: The room admits friends of its creator only */
 | "friends_only"
/** 403: The account is suspended */
 | "account_suspended"
/** 403: The player is banned from the room */
 | "banned"
/** 403: The player takes no part in paid rooms, by their own wish */
 | "self_excluded"
/** 403: The player is not in the tournament */
 | "not_entrant"
/** 403: The player was disqualified from the tournament */
 | "disqualified"
/** 404: There is nothing at this address */
 | "not_found"
/** 404: No such room */
 | "room_not_found"
/** 404: No such user */
 | "user_not_found"
/** 404: No such game */
 | "game_not_found"
/** 404: No such token */
 | "token_not_found"
/** 404: No such asset */
 | "asset_not_found"
/** 404: No such save slot */
 | "slot_not_found"
/** 404: No such leaderboard */
 | "board_not_found"
/** 404: The leaderboard keeps no such season */
 | "season_not_found"
/** 404: The player has no entry */
 | "entry_not_found"
/** 404: No such play of this player */
 | "play_not_found"
/** 404: No such tournament */
 | "tournament_not_found"
/** 404: The tournament has no such match */
 | "match_not_found"
/** 404: The save slot keeps no such version */
 | "save_version_not_found"
/** 405: The method is not allowed here */
 | "method_not_allowed"
/** 409: The room is full */
 | "room_full"
/** 409: The room has ended */
 | "room_closed"
/** 409: The room has already started */
 | "already_started"
/** 409: The room has not started */
 | "not_started"
/** 409: The room has too few players */
 | "not_enough_players"
/** 409: Somebody changed it first */
 | "version_conflict"
/** 409: The stored save was altered and cannot be trusted: restore an intact version */
 | "save_tampered"
/** 409: The per-user limit of the asset is reached */
 | "already_owned"
/** 409: The stock is too small */
 | "sold_out"
/** 409: The price has changed */
 | "price_changed"
/** 409: Another result was given before */
 | "result_conflict"
/** 409: The players disagree, and the operator decides */
 | "room_disputed"
/** 409: The room is not disputed */
 | "not_disputed"
/** 409: The first request with this key is still running */
 | "request_in_progress"
/** 409: A limit is reached */
 | "limit_reached"
/** 409: The stake is above the player's own limit */
 | "stake_limit"
/** 409: The player's own limit of paid rooms is reached */
 | "open_rooms_limit"
/** 409: The player's own limit of losses is reached */
 | "loss_limit"
/** 409: A token with this code exists */
 | "token_exists"
/** 409: Money of the player is held in a room or a tournament */
 | "money_held"
/** 409: The game has a leaderboard with this key */
 | "board_exists"
/** 409: The season takes no scores */
 | "season_closed"
/** 409: A score was sent for this play before */
 | "play_used"
/** 409: The play lasted too long */
 | "play_expired"
/** 409: The player has no submissions left in this season */
 | "submissions_exhausted"
/** 409: The player is in another segment in this season */
 | "segment_fixed"
/** 409: The leaderboard takes no more players */
 | "board_full"
/** 409: The tournament is full */
 | "tournament_full"
/** 409: The tournament takes no entrants now */
 | "registration_closed"
/** 409: There is no check-in now */
 | "check_in_closed"
/** 409: The tournament is over, or is ending */
 | "tournament_closed"
/** 409: The player has no attempts left */
 | "attempts_exhausted"
/** 409: The match is decided */
 | "match_decided"
/** 409: The account is linked already */
 | "already_linked"
/** 413: The body is too large */
 | "payload_too_large"
/** 415: The body must be application/json */
 | "unsupported_media_type"
/** 422: The Idempotency-Key was used for another request */
 | "idempotency_key_reused"
/** 422: The save breaks a rule of the game */
 | "save_rejected"
/** 422: The score breaks a rule of the leaderboard */
 | "score_rejected"
/** 429: Too many requests */
 | "rate_limited"
/** 500: Something went wrong */
 | "internal"
/** 503: This node is shutting down */
 | "draining"
/** 503: The store cannot be reached */
 | "store_unavailable"
/** 503: The store is nearly full and takes nothing new */
 | "store_full"
/** 503: Not yet as durable as promised: ask again with the same key */
 | "outcome_unknown";
/** The codes of errors that the SDK itself reports. */
type ClientCode = 
/** The service cannot be reached; the same call may succeed later */
"offline"
/** No answer in time; a call that changes something may have had its effect */
 | "timeout"
/** Too much waits to be sent already */
 | "queue_full"
/** The call's own signal ended it */
 | "aborted"
/** The client was closed */
 | "closed"
/** The service no longer speaks to this version of the SDK */
 | "protocol_too_old";
/** Every code of a ParlorError. */
type Code = ServiceCode | ClientCode;
/** An error of the service or of the way to it. Every promise of the SDK rejects with one. */
declare class ParlorError extends Error {
    /** What happened; one of a closed list. */
    readonly code: Code;
    /** The HTTP status, 0 for what the SDK reports itself. */
    readonly status: number;
    /** A sentence for developers. */
    readonly detail: string;
    /** Names the request in the logs of the service. */
    readonly requestId?: string;
    /** Whether the same call may succeed later. */
    readonly retryable: boolean;
    /** When it may be tried again. */
    readonly retryAfterMs?: number;
    /** The address of the page about the code. */
    readonly docs: string;
    /** What else the service said, such as `available` and `required`. */
    readonly data: any;
    constructor(code: Code, detail?: string, o?: Partial<ParlorError>);
}
interface components {
    schemas: {
        /** @description What the node needs, and what an operator must know */
        ReadyChecks: {
            /**
             * @description `store`, in a Cluster one `store:0-5460` for each master by its first slots, `memory`,
             * `archive`
             */
            name: string;
            ok: boolean;
            /** @description A sentence */
            detail: string;
        }[];
        /** @description Who may send scores: one word or a list; `server` by default */
        WritersInput: ("server" | "players" | "rooms") | ("server" | "players" | "rooms")[];
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
        LeaderboardInput: {
            /** @description Its key in the game */
            board: string;
            name: string;
            /**
             * @default desc
             * @enum {string}
             */
            order?: "desc" | "asc";
            /**
             * @description What a further score does to an entry
             * @default best
             * @enum {string}
             */
            operator?: "best" | "last" | "sum" | "min" | "max";
            /**
             * @description Fraction digits of scores
             * @default 0
             */
            decimals?: number;
            subscore?: components["schemas"]["Subscore"] | null;
            /**
             * @description With `shared`, equal entries have the same `place`: 1, 1, 3
             * @default first
             * @enum {string}
             */
            ties?: "first" | "shared";
            writers?: components["schemas"]["WritersInput"];
            rules?: components["schemas"]["ScoreRules"] | null;
            /** @description Null: a season lasts until staff ends it */
            schedule?: components["schemas"]["SeasonSchedule"] | null;
            /**
             * Format: date-time
             * @description Of the first season; now by default
             */
            startsAt?: string | null;
            /**
             * @description How long late results count in a season that is over
             * @default 0
             */
            graceSeconds?: number;
            /**
             * @description Past seasons that are kept
             * @default 10
             */
            keepSeasons?: number;
            /** @description Names by which players are grouped */
            segments?: string[];
            /**
             * Format: int64
             * @description On all shards together
             */
            maxEntries?: number | null;
            /** @default 1 */
            shards?: number;
            league?: components["schemas"]["League"] | null;
            prizes?: components["schemas"]["Prizes"] | null;
            metadata?: components["schemas"]["Metadata"];
        };
        LeaderboardPatch: {
            name?: string;
            writers?: components["schemas"]["WritersInput"];
            rules?: components["schemas"]["ScoreRules"] | null;
            schedule?: components["schemas"]["SeasonSchedule"] | null;
            graceSeconds?: number;
            keepSeasons?: number;
            segments?: string[];
            /**
             * Format: int64
             * @description On all shards together
             */
            maxEntries?: number | null;
            league?: components["schemas"]["League"] | null;
            prizes?: components["schemas"]["Prizes"] | null;
            metadata?: components["schemas"]["Metadata"];
            /**
             * @description `now`: in the season that is open, too; not for `schedule`, `graceSeconds`, `segments`,
             * `league` and `prizes`
             * @default next_season
             * @enum {string}
             */
            effective?: "next_season" | "now";
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
            writers: ("server" | "players" | "rooms")[];
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
            writers: ("server" | "players" | "rooms")[];
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
            /** @description An exact decimal */
            score: number;
            /** @description An exact decimal; null on a leaderboard without one */
            subscore: number | null;
            reachedAt: components["schemas"]["Time"];
            /** Format: int64 */
            submissions: number;
            /** @description Percent of the entries that are behind */
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
        ScoreInput: {
            score: components["schemas"]["ScoreValue"];
            subscore?: components["schemas"]["ScoreValue"];
            /**
             * Format: int64
             * @description For staff, and required there
             */
            userId?: number;
            /** @description Where the rules demand plays */
            playId?: string;
            /**
             * Format: date-time
             * @description For staff: names the season of a late result
             */
            playedAt?: string;
            /** @description Up to 1 KiB */
            metadata?: {
                [key: string]: unknown;
            };
            evidence?: components["schemas"]["ScoreEvidence"];
            /**
             * @description For staff; fixed for a player in a season
             * @example {
             *       "country": "DE"
             *     }
             */
            segments?: {
                [key: string]: string;
            };
        };
        SubmitResult: {
            entry: components["schemas"]["BoardEntry"];
            /** @description Whether the score has changed the entry */
            changed: boolean;
            /** @description The entry before; null for a first score */
            previous: {
                score: number;
                subscore: number | null;
            } | null;
        };
        /** @enum {string} */
        TournamentStatus: "ANNOUNCED" | "REGISTRATION" | "CHECK_IN" | "RUNNING" | "SETTLING" | "FINISHED" | "CANCELLING" | "CANCELLED";
        TournamentInput: {
            name: string;
            /** @enum {string} */
            format: "score" | "single_elimination" | "swiss" | "round_robin";
            /**
             * Format: int64
             * @description Required with a fee or a prize
             */
            entryTokenId?: number;
            entryFee?: components["schemas"]["AmountInput"];
            addedPrize?: {
                amount: components["schemas"]["AmountInput"];
                /** @enum {string} */
                from: "house" | "mint";
            } | null;
            /** @description Basis points of the pot; that of the game by default */
            rakeBps?: number;
            /** @description Basis points by place, 10,000 together; the first takes all by default */
            payout?: number[];
            /** @description With fewer at the start it is cancelled; 2 by default */
            minEntrants?: number;
            /** @description At most 100,000 of score, 4,096 of swiss, 1,024 of single_elimination, 32 of round_robin */
            maxEntrants: number;
            /**
             * Format: date-time
             * @description Now by default
             */
            registrationOpensAt?: string | null;
            /**
             * Format: date-time
             * @description Without it nobody has to check in
             */
            checkInOpensAt?: string | null;
            /**
             * Format: date-time
             * @description At most 366 days ahead
             */
            startsAt: string;
            /**
             * Format: date-time
             * @description Required of score, whose last play begins before it; a tournament with matches that is not
             * decided then is cancelled, unless a report waits for its decision
             */
            endsAt?: string | null;
            /** @description Of score: its leaderboard */
            board?: {
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
                /** @default 0 */
                decimals?: number;
                /**
                 * @description For plays that began before endsAt
                 * @default 0
                 */
                graceSeconds?: number;
                /**
                 * @description Who sends scores: `server`, or `server` and `players`. With a fee or a prize players may
                 * only with `rules.play: true` and `rules.max` (with `order: asc`, `rules.min`)
                 */
                writers?: "server" | ("server" | "players")[];
                rules?: components["schemas"]["ScoreRules"] | null;
            } | null;
            /** @description With matches: their rooms */
            room?: {
                /**
                 * @default 2
                 * @enum {integer}
                 */
                maxPlayers?: 2;
                metadata?: components["schemas"]["Metadata"];
                /**
                 * @default server
                 * @enum {string}
                 */
                settlement?: "server" | "consensus";
            } | null;
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
            /**
             * @default public
             * @enum {string}
             */
            visibility?: "public" | "unlisted";
            metadata?: components["schemas"]["Metadata"];
        };
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
                writers?: ("server" | "players")[];
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
            /** @description null before SETTLING */
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
            /** @description Of a score tournament: the score */
            points: number;
            /** @description Byes and walkovers too */
            wins: number;
            draws: number;
            losses: number;
            /** @description What orders players with equal points, as far as the format has it */
            tiebreaks: {
                buchholz?: number;
                directEncounter?: number;
                sonnebornBerger?: number;
                seed?: number;
            };
            /** @description null before SETTLING */
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
        Cursor: string | null;
        /**
         * @description A player chooses none that looks like a name of staff, such as admin; the game server may give
         * any
         */
        Username: string;
        /**
         * Format: uri
         * @description The https address of a picture at a public host name; at one of the game's settings.avatarHosts
         * where it lists any
         */
        Avatar: string | null;
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
         * @description Exact decimal, printed without rounding or exponent
         * @example 2.5
         */
        Amount: number;
        /**
         * @description An exact decimal, at most 2^53-1 minor units
         * @example 2.5
         */
        AmountInput: number | string;
        /**
         * @example {
         *       "type": "/docs/errors/insufficient_funds",
         *       "title": "The balance is too small",
         *       "status": 402,
         *       "detail": "The balance is too small.",
         *       "instance": "/api/v1/game-session/join",
         *       "code": "insufficient_funds",
         *       "requestId": "5f0c1a52-7f0e-4c55-9f39-1f6a3f0d5b11",
         *       "retryable": false,
         *       "tokenId": "GOLD",
         *       "available": 1.5,
         *       "availableAmount": "150",
         *       "required": 2.5,
         *       "requiredAmount": "250"
         *     }
         */
        Problem: {
            /**
             * Format: uri-reference
             * @description The address of the code's page on the node, `/docs/errors/<code>`
             */
            type: string;
            title: string;
            status: number;
            detail: string;
            /** @description Path of the request */
            instance: string;
            code: string;
            requestId: string;
            /** @description The same request may succeed later */
            retryable: boolean;
            errors?: {
                /** @example results[0].place */
                field: string;
                /** @example required */
                code: string;
                message: string;
            }[];
            available?: components["schemas"]["Amount"];
            availableAmount?: components["schemas"]["Units"];
            required?: components["schemas"]["Amount"];
            requiredAmount?: components["schemas"]["Units"];
            tokenId?: components["schemas"]["TokenCode"];
            /**
             * @description The rule that a rejected save breaks; save_rejected only
             * @example maxGainPerMinute
             */
            rule?: string;
            /**
             * @description Where the rejected save breaks it
             * @example hero.gold
             */
            path?: string;
            /**
             * @description Of a version_conflict, the version of the game, the stored save, or the shared state of the
             * room
             */
            current?: number | {
                slot: string;
                /** Format: int64 */
                version: number;
                state: {
                    [key: string]: unknown;
                };
                savedAt: components["schemas"]["Time"];
                /** @description Bytes of the state */
                size: number;
            } | {
                /** Format: int64 */
                version: number;
                value: {
                    [key: string]: unknown;
                };
            };
        } & {
            [key: string]: unknown;
        };
        User: {
            id: components["schemas"]["Id"];
            username: string;
            avatar: string | null;
        };
        Player: {
            id: components["schemas"]["Id"];
            username: string;
            avatar: string | null;
            gameId: components["schemas"]["Id"];
            /**
             * @description By what the player can come back
             * @enum {string}
             */
            kind: "guest" | "device" | "external" | "issuer";
            createdAt: components["schemas"]["Time"];
            suspended: {
                reason: string;
                /** Format: date-time */
                until: string | null;
            } | null;
        };
        Account: {
            id: components["schemas"]["Id"];
            username: string;
            avatar: string | null;
            gameId: components["schemas"]["Id"];
            /**
             * @description By what the player can come back
             * @enum {string}
             */
            kind: "guest" | "device" | "external" | "issuer";
            createdAt: components["schemas"]["Time"];
        };
        Session: {
            accessToken: string;
            /**
             * @description Seconds
             * @example 900
             */
            expiresIn: number;
            refreshToken: string;
            user: components["schemas"]["User"];
        };
        Friend: {
            id: components["schemas"]["Id"];
            username: string;
            avatar: string | null;
            /**
             * @description `outgoing`: I asked; `incoming`: the other asked; `blocked`: by me
             * @enum {string}
             */
            state: "friend" | "outgoing" | "incoming" | "blocked";
            since: components["schemas"]["Time"];
        };
        TokenMetadata: {
            /** @description Hexadecimal */
            assetName: string;
            /** @description Hexadecimal */
            policyId: string;
            decimals: string;
        };
        /** @description The games whose server keys may credit and debit the token; nothing else depends on it */
        TokenGames: {
            gameId: components["schemas"]["Id"];
            /**
             * @description What the server keys of the game may credit in a day (UTC), in the token's own unit; beyond
             * it 409 limit_reached. 0: debits only
             */
            mintLimitPerDay: number | string;
        }[];
        AdminToken: {
            id: components["schemas"]["Id"];
            tokenId: components["schemas"]["TokenCode"];
            tokenName: string;
            logoUrl: string | null;
            metadata: components["schemas"]["TokenMetadata"];
            /** @description Units in existence: in the player's game, and summed over all games for an operator */
            volume: components["schemas"]["Amount"];
            games: components["schemas"]["TokenGames"];
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
        Balance: {
            id: components["schemas"]["Id"];
            tokenId: components["schemas"]["TokenCode"];
            tokenName: string;
            logoUrl: string | null;
            metadata: components["schemas"]["TokenMetadata"];
            volume: components["schemas"]["Amount"];
            amount: components["schemas"]["Units"];
            held: components["schemas"]["Amount"];
            heldAmount: components["schemas"]["Units"];
        };
        /** @description What a player set for stakes of a token. Null is no limit. */
        TokenLimits: {
            tokenId: components["schemas"]["TokenCode"];
            /**
             * @description The highest stake of one room
             * @example 2.5
             */
            maxStake: number | null;
            /** @description The same in minor units */
            maxStakeAmount: string | null;
            /** @description Rooms with a stake of the token at once */
            maxOpenRooms: number | null;
            /**
             * @description Stakes less payouts, prizes and refunds within 24 hours; stakes in rooms that have not ended
             * count
             * @example 10
             */
            maxLoss24h: number | null;
            /** @description The same in minor units */
            maxLoss24hAmount: string | null;
            /**
             * Format: date-time
             * @description Until then the player takes part in no paid room of the game, whatever its token
             */
            excludedUntil: string | null;
            /** @description Rooms with a stake now; null until a limit of the token was set */
            openRooms: number | null;
            /**
             * @description What maxLoss24h is compared with; negative after winning
             * @example -2.5
             */
            lost24h: number | null;
            /** @description The same in minor units */
            lost24hAmount: string | null;
            /** @description Looser limits that do not count yet */
            pending: {
                /** @enum {string} */
                limit: "maxStake" | "maxOpenRooms" | "maxLoss24h";
                /** @description Null is no limit */
                value: number | null;
                /** @description The same in minor units; rooms are counted */
                valueAmount: string | null;
                from: components["schemas"]["Time"];
            }[];
        };
        LedgerEntry: {
            /** Format: int64 */
            id: number;
            at: components["schemas"]["Time"];
            tokenId: components["schemas"]["TokenCode"];
            delta: components["schemas"]["Amount"];
            deltaAmount: components["schemas"]["Units"];
            balanceAfter: components["schemas"]["Amount"];
            balanceAfterAmount: components["schemas"]["Units"];
            reason: string;
            /** @description What it belongs to: a room, a purchase, or the operator's text */
            ref: string;
        };
        PlayerSession: {
            startedAt: components["schemas"]["Time"];
            /**
             * Format: date-time
             * @description Null when it never was
             */
            refreshedAt: string | null;
            expiresAt: components["schemas"]["Time"];
            /** @description The server key that made it; null when the player signed in */
            serverKeyId: string | null;
        };
        LoadedSave: {
            slot: string;
            /** Format: int64 */
            version: number;
            state: {
                [key: string]: unknown;
            };
            savedAt: components["schemas"]["Time"];
            /** @description Bytes of the state */
            size: number;
        };
        /** @description asyncapi.yaml describes the data of each type */
        RoomEvent: {
            /** @example room.joined */
            type: string;
            roomId: components["schemas"]["RoomId"];
            /** Format: int64 */
            seq: number;
            position: string;
            at: components["schemas"]["Time"];
            data: {
                [key: string]: unknown;
            };
        };
        GameLedgerEntry: {
            /**
             * Format: int64
             * @description The number of the entry
             */
            id: number;
            at: components["schemas"]["Time"];
            tokenId: components["schemas"]["TokenCode"];
            /** @example stake */
            reason: string;
            /** @description A room, `asset:7`, or the caller of a credit or debit */
            ref: string;
            postings: {
                /** @enum {string} */
                account: "wallet" | "escrow" | "prizes" | "house" | "minted";
                /**
                 * Format: int64
                 * @description The player of a wallet
                 */
                userId: number | null;
                delta: components["schemas"]["Amount"];
                deltaAmount: components["schemas"]["Units"];
            }[];
        };
        Counts: number[];
        Node: {
            id: string;
            host: string;
            /** @description `host:port` at which other nodes reach this one; empty if they cannot */
            address: string;
            version: string;
            /** @description Empty of a node of v0.9.0 */
            commit: string;
            /**
             * @description Oldest layout of the store that the node reads; 0 of a node of v0.9.0, which reads layout 3
             * only
             */
            oldestLayout: number;
            /** @description Newest layout of the store that the node reads; 0 of a node of v0.9.0 */
            newestLayout: number;
            /** @description Layout that the node writes: that of the store; 0 of a node of v0.9.0 */
            layout: number;
            startedAt: components["schemas"]["Time"];
            at: components["schemas"]["Time"];
            draining: boolean;
            /**
             * @description What an acknowledged change survives now
             * @enum {string}
             */
            durability: "memory" | "disk" | "replica";
            /**
             * @description What it should survive by the settings of the node
             * @enum {string}
             */
            durabilityMode: "memory" | "disk" | "replica";
            sockets: number;
            topics: number;
            /** @description Seats whose players are connected by this node */
            players: number;
            goroutines: number;
            /** Format: int64 */
            memoryBytes: number;
            /**
             * Format: int64
             * @description Microseconds from publish to receipt
             */
            lagMicros: number;
            /**
             * Format: int64
             * @description Since the start of the node
             */
            requests: number;
            /**
             * Format: int64
             * @description Of the requests those with a status of 500 or more
             */
            failures: number;
            /**
             * Format: int64
             * @description Events handed to sockets since the start of the node
             */
            deliveries: number;
            /** @description Counts of the last 60 intervals at most, oldest first; all lists are equally long */
            recent: {
                intervalSeconds: number;
                /**
                 * Format: date-time
                 * @description The end of the last interval
                 */
                until: string;
                requests: components["schemas"]["Counts"];
                failures: components["schemas"]["Counts"];
                deliveries: components["schemas"]["Counts"];
                sockets: components["schemas"]["Counts"];
                lagMicros: components["schemas"]["Counts"];
                ledgerEntries: components["schemas"]["Counts"];
                /**
                 * @description For each token the minor units that came into an account. Each entry counts on one node
                 */
                moved: {
                    [key: string]: components["schemas"]["Units"][];
                };
            };
        };
        /** @enum {string} */
        RoomStatus: "CREATED" | "STARTED" | "FINISHED" | "CANCELLED" | "DISPUTED";
        CreateRoom: {
            gameId?: components["schemas"]["Id"];
            /**
             * Format: int64
             * @description `EntryToken.id`, the integer
             */
            entryTokenId?: number | null;
            roomEntry?: components["schemas"]["AmountInput"];
            maxPlayers: number;
            /** @description 2 by default where there is an entry, else 1 */
            minPlayers?: number;
            /** @default false */
            isFriendsOnly?: boolean;
            /**
             * @default public
             * @enum {string}
             */
            visibility?: "public" | "unlisted" | "private";
            metadata?: components["schemas"]["Metadata"];
            /**
             * @description Start when full or when all are ready
             * @default false
             */
            autoStart?: boolean;
            /**
             * @description Who reports the result: the game server, or every player; a room with consensus has at most
             * 32 players. It must be one of the settlements that the game allows
             * @default server
             * @enum {string}
             */
            settlement?: "server" | "consensus";
            rakeBps?: number;
            /** @description Shares by place in basis points, 10,000 together */
            payout?: number[];
            /**
             * @default split
             * @enum {string}
             */
            tie?: "split" | "refund";
        };
        Result: {
            userId: components["schemas"]["Id"];
            /** @description From 1; equal places are a tie */
            place: number;
            score?: number | null;
        };
        Seat: {
            userId: components["schemas"]["Id"];
            /** @enum {string} */
            state: "active" | "forfeited" | "reserved";
            ready: boolean;
            joinedAt: components["schemas"]["Time"];
        };
        Presence: {
            userId: components["schemas"]["Id"];
            connected: boolean;
            /** @description Until when the others should wait; only of a player who was connected and is no more */
            graceUntil?: components["schemas"]["Time"];
        };
        Room: {
            /** @description Unique within the game */
            id: components["schemas"]["Id"];
            roomId: components["schemas"]["RoomId"];
            gameId: components["schemas"]["Id"];
            /** @description null in a free room */
            entryToken: components["schemas"]["EntryToken"] | null;
            roomEntry: components["schemas"]["Amount"];
            totalWager: components["schemas"]["Amount"];
            creator: components["schemas"]["User"];
            /** @description In seating order, creator first */
            participants: components["schemas"]["User"][];
            maxPlayers: number;
            isFriendsOnly: boolean;
            status: components["schemas"]["RoomStatus"];
            createdAt: components["schemas"]["Time"];
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
            minPlayers: number;
            metadata: components["schemas"]["Metadata"];
            startedAt: (string & components["schemas"]["Time"]) | null;
            finishedAt: (string & components["schemas"]["Time"]) | null;
            /** @enum {string} */
            settlement: "server" | "consensus";
            host: components["schemas"]["User"];
            /** @description In seating order, forfeited and reserved ones too */
            seats: components["schemas"]["Seat"][];
            /**
             * @description Which players with an active seat have a socket that follows the room, in seating order.
             * Absent while nobody follows the room, and once it has ended. It changes without the version, so a 304
             * says nothing of it.
             */
            presence?: components["schemas"]["Presence"][];
            /** @description A short code to tell other players */
            code?: string;
            roomEntryAmount?: components["schemas"]["Units"];
            totalWagerAmount?: components["schemas"]["Units"];
            /** @enum {string} */
            visibility?: "public" | "unlisted" | "private";
            autoStart?: boolean;
            rakeBps?: number;
            /** @description Basis points by place, 10,000 together */
            payout?: number[];
            /** @enum {string} */
            tie?: "split" | "refund";
            /**
             * @description Why it was cancelled
             * @enum {string|null}
             */
            reason?: "host" | "operator" | "server" | "empty" | "idle" | "expired" | "timeout" | "dispute_refunded" | "no_show" | "tournament" | null;
            /**
             * @description Of the last event; opaque
             * @example 12-00abc123
             */
            position?: string;
            results?: components["schemas"]["Result"][] | null;
            payouts?: components["schemas"]["Payout"][] | null;
            refunds?: components["schemas"]["Refund"][] | null;
            rake?: components["schemas"]["Amount"];
            rakeAmount?: components["schemas"]["Units"];
            /**
             * Format: uuid
             * @description The room that a rematch opened
             */
            rematchRoomId?: string | null;
            /** @description With consensus; when reports contradicted each other */
            disputedAt?: (string & components["schemas"]["Time"]) | null;
            /** @description With consensus, while it is disputed; when every stake goes back if nobody decides */
            refundAt?: (string & components["schemas"]["Time"]) | null;
            /**
             * @description With consensus, from the first report to the end; until when the others may report. Then
             * whoever is silent agrees
             */
            reportUntil?: (string & components["schemas"]["Time"]) | null;
            /** @description With consensus; the players who have reported a result, in seating order */
            reportedBy?: components["schemas"]["Id"][];
            /**
             * @description With consensus, for the operator; what the players reported, once the room is disputed or
             * has ended
             */
            reports?: {
                userId: components["schemas"]["Id"];
                /** @description Best place first; without those who had forfeited */
                results: components["schemas"]["Result"][];
                /**
                 * Format: int64
                 * @description Of a disputed room; how often the operator decided a dispute of this game otherwise than
                 * the player had reported
                 */
                disputesLost?: number;
            }[];
            /** @description The shared state, once there is one. Lists have it only with `mine` */
            shared?: {
                /**
                 * Format: int64
                 * @description Rises by one with every change of the shared state
                 */
                version: number;
                /** @description The values by their names */
                value: {
                    [key: string]: unknown;
                };
            };
            /** @description Whose turn it is, while somebody has it */
            turn?: {
                userId: components["schemas"]["Id"];
                deadline: components["schemas"]["Time"];
            };
            /** @description When the room is cancelled if there is no result by then; null before the start */
            matchDeadline?: (string & components["schemas"]["Time"]) | null;
        };
        SetState: {
            roomId: components["schemas"]["RoomId"];
            /**
             * Format: int64
             * @description Of the shared state that was read last
             * @default 0
             */
            version?: number;
            /** @description Values to set, by their names: 1 to 64 letters, digits, `.`, `_` and `-` */
            patch?: {
                [key: string]: unknown;
            };
            /** @description Names to remove */
            delete?: string[];
        };
        SetTurn: {
            roomId: components["schemas"]["RoomId"];
            /**
             * Format: int64
             * @description Who gets the turn; null: nobody
             */
            userId?: number | null;
            /**
             * Format: int64
             * @description Required with userId
             */
            seconds?: number | null;
        };
        Payout: {
            userId: components["schemas"]["Id"];
            /** @description null for a forfeited seat whose stake is returned */
            place: number | null;
            payout: components["schemas"]["Amount"];
            amount: components["schemas"]["Units"];
        };
        Refund: {
            userId: components["schemas"]["Id"];
            refund: components["schemas"]["Amount"];
            amount: components["schemas"]["Units"];
        };
        Asset: {
            id: components["schemas"]["Id"];
            gameId: components["schemas"]["Id"];
            name: string;
            tokenId: components["schemas"]["TokenCode"];
            price: components["schemas"]["Amount"];
            priceAmount: components["schemas"]["Units"];
            /**
             * Format: int64
             * @description Pieces left; null without limit
             */
            stock: number | null;
            /**
             * Format: int64
             * @description Pieces that one player may own; null without limit
             */
            perUserLimit: number | null;
            /** Format: int64 */
            sold: number;
            /** @description On sale */
            active: boolean;
            metadata: components["schemas"]["Metadata"];
            /**
             * Format: int64
             * @description Rises with every patch
             */
            version: number;
            createdAt: components["schemas"]["Time"];
        };
        OwnedAsset: {
            asset: components["schemas"]["Asset"];
            /** Format: int64 */
            owned: number;
        };
        Purchase: {
            /** Format: int64 */
            purchaseId: number;
            asset: components["schemas"]["Asset"];
            /** Format: int64 */
            quantity: number;
            price: components["schemas"]["Amount"];
            priceAmount: components["schemas"]["Units"];
            total: components["schemas"]["Amount"];
            totalAmount: components["schemas"]["Units"];
            entryToken: components["schemas"]["EntryToken"];
            balance: components["schemas"]["Balance"];
            /**
             * Format: int64
             * @description After the purchase
             */
            owned: number;
        };
        Saved: {
            slot: string;
            /**
             * Format: int64
             * @description Counts from 1 in each slot
             */
            version: number;
            savedAt: components["schemas"]["Time"];
            /** @description Bytes of the state without white space */
            size: number;
        };
        Game: {
            id: components["schemas"]["Id"];
            name: string;
            origins: string[];
            welcomeGrant: {
                tokenId: components["schemas"]["TokenCode"];
                amount: components["schemas"]["Amount"];
                amountUnits?: components["schemas"]["Units"];
                /** @enum {string} */
                for: "linked" | "any";
            } | null;
            settings: components["schemas"]["GameSettings"];
            /** @description Without their secrets */
            serverKeys: {
                id: string;
                createdAt: components["schemas"]["Time"];
            }[];
            createdAt: components["schemas"]["Time"];
            /** Format: int64 */
            version: number;
            /** @description What the game has of each member of `settings.quotas`; in the response of getGame alone */
            use?: {
                boards: components["schemas"]["Use"];
                openTournaments: components["schemas"]["Use"];
                assets: components["schemas"]["Use"];
                newPlayersPerDay: components["schemas"]["Use"];
                bytes: components["schemas"]["Use"];
            };
        };
        Use: {
            /** Format: int64 */
            used: number;
            /**
             * Format: int64
             * @description The quota; of bytes 0 when the operator set none
             */
            max: number;
        };
        GameWithKey: {
            game: components["schemas"]["Game"];
            serverKey: string;
        };
        WelcomeGrantInput: {
            tokenId: components["schemas"]["TokenCode"];
            amount: components["schemas"]["AmountInput"];
            /**
             * @description linked: players for whom the game's server or an issuer vouches, at their sign-in or when
             * they are linked. any: guests too, of whom anybody can make many
             * @default linked
             * @enum {string}
             */
            for?: "" | "linked" | "any";
        } | null;
        GameSettings: {
            /** @default 0 */
            rakeBps?: number;
            /**
             * @description No player can go below
             * @default 0
             */
            minRakeBps?: number;
            /**
             * @description No player can go above. A raised minRakeBps raises it, too
             * @default 2000
             */
            maxRakeBps?: number;
            /** @default 7200 */
            matchTimeoutSeconds?: number;
            /**
             * @description In a room with consensus, from the first report until whoever is silent agrees. A change
             * counts for windows that begin after it
             * @default 120
             */
            reportWindowSeconds?: number;
            /** @default 900 */
            idleTimeoutSeconds?: number;
            /** @default 86400 */
            maxAgeSeconds?: number;
            maxPlayers?: number;
            /**
             * @description Age of an account, at most 30 days, before it may take part in a room with an entry
             * @default 0
             */
            minAgeToStakeSeconds?: number;
            issuers?: components["schemas"]["Issuer"][];
            /**
             * @description Hosts at which avatars may be: a name, or `*.` and a name for all names below it. None:
             * every public host
             */
            avatarHosts?: string[];
            /**
             * @description Which players may write the shared state of rooms, by prefixes of names; the longest one
             * decides
             * @example {
             *       "": "host",
             *       "hand.": "owner"
             *     }
             */
            stateKeys?: {
                [key: string]: "host" | "owner" | "all";
            };
            /**
             * @description What happens when the time of a turn is over: the next player gets the turn, or the seat is
             * forfeited before
             * @default skip
             * @enum {string}
             */
            turnTimeout?: "skip" | "forfeit";
            /**
             * @description The leaderboards to which a finished room adds a score of each of its players; their
             * `writers` must name `rooms`. Rooms that were created while there was none feed none
             */
            boards?: components["schemas"]["BoardFeed"][];
            /**
             * @description The settlements that players may choose for a room. A game of an older build has both until
             * staff names some; matches have the settlement of their tournament
             * @default [
             *       "server"
             *     ]
             */
            settlements?: ("server" | "consensus")[];
            quotas?: components["schemas"]["GameQuotas"];
            /**
             * @description How much of its token the welcome grants may mint in a day (UTC), in the token's own unit.
             * Beyond it a sign-in succeeds without the grant, which a later sign-in gives. null: as much as the game's
             * servers may mint of the token, or, where these mint nothing, 10,000 grants. A response has a number. Only
             * the operator may change it
             */
            grantLimitPerDay?: (number | null) | string;
            /** @description The rules that a save must keep, and a restored version too */
            progressRules?: {
                [key: string]: unknown;
            }[];
        };
        GameSettingsInput: {
            /** @default 0 */
            rakeBps?: number;
            /**
             * @description No player can go below
             * @default 0
             */
            minRakeBps?: number;
            /**
             * @description No player can go above. A raised minRakeBps raises it, too
             * @default 2000
             */
            maxRakeBps?: number;
            /** @default 7200 */
            matchTimeoutSeconds?: number;
            /**
             * @description In a room with consensus, from the first report until whoever is silent agrees. A change
             * counts for windows that begin after it
             * @default 120
             */
            reportWindowSeconds?: number;
            /** @default 900 */
            idleTimeoutSeconds?: number;
            /** @default 86400 */
            maxAgeSeconds?: number;
            maxPlayers?: number;
            /**
             * @description Age of an account, at most 30 days, before it may take part in a room with an entry
             * @default 0
             */
            minAgeToStakeSeconds?: number;
            issuers?: components["schemas"]["Issuer"][];
            /**
             * @description Hosts at which avatars may be: a name, or `*.` and a name for all names below it. None:
             * every public host
             */
            avatarHosts?: string[];
            /**
             * @description Which players may write the shared state of rooms, by prefixes of names; the longest one
             * decides
             * @example {
             *       "": "host",
             *       "hand.": "owner"
             *     }
             */
            stateKeys?: {
                [key: string]: "host" | "owner" | "all";
            };
            /**
             * @description What happens when the time of a turn is over: the next player gets the turn, or the seat is
             * forfeited before
             * @default skip
             * @enum {string}
             */
            turnTimeout?: "skip" | "forfeit";
            /**
             * @description The leaderboards to which a finished room adds a score of each of its players; their
             * `writers` must name `rooms`. Rooms that were created while there was none feed none
             */
            boards?: components["schemas"]["BoardFeed"][];
            /**
             * @description The settlements that players may choose for a room. A game of an older build has both until
             * staff names some; matches have the settlement of their tournament
             * @default [
             *       "server"
             *     ]
             */
            settlements?: ("server" | "consensus")[];
            quotas?: components["schemas"]["GameQuotas"];
            /**
             * @description How much of its token the welcome grants may mint in a day (UTC), in the token's own unit.
             * Beyond it a sign-in succeeds without the grant, which a later sign-in gives. null: as much as the game's
             * servers may mint of the token, or, where these mint nothing, 10,000 grants. A response has a number. Only
             * the operator may change it
             */
            grantLimitPerDay?: (number | null) | string;
            /** @description The rules that a save must keep, and a restored version too */
            progressRules?: {
                [key: string]: unknown;
            }[];
        };
        /**
         * @description How much the game may have in the store; beyond it 409 `limit_reached` with `limit`, the name of
         * the member, and `max`. Only the operator may change them
         */
        GameQuotas: {
            /**
             * Format: int64
             * @description Leaderboards
             * @default 200
             */
            boards?: number;
            /**
             * Format: int64
             * @description Tournaments that have not ended
             * @default 1000
             */
            openTournaments?: number;
            /**
             * Format: int64
             * @description Assets, on sale or not
             * @default 5000
             */
            assets?: number;
            /**
             * Format: int64
             * @description Players who are made in a day (UTC)
             * @default 100000
             */
            newPlayersPerDay?: number;
            /**
             * Format: int64
             * @description Bytes in the store, estimated. 0: none; then a quarter of the memory of a server is the
             * share of the game when the store is nearly full
             * @default 0
             */
            bytes?: number;
        };
        BoardFeed: {
            /** @description Key of a leaderboard of the game, here once */
            board: string;
            /**
             * @description score: the score of the result, if there is one. win: 1 for the first place, 0 for the
             * others. payout: what the player got of the pot, rounded down to the decimals of the leaderboard. A room
             * with `settlement: consensus` feeds `win` alone, and no leaderboard with prizes. A leaderboard with prizes
             * cannot be fed from payout; it takes rooms in which two or more have played
             * @enum {string}
             */
            from: "score" | "win" | "payout";
            /**
             * @description Whether a room counts that ended because all players but one had left. By default it feeds
             * nothing
             * @default false
             */
            walkovers?: boolean;
        };
        /** @description An identity provider whose JWTs sign players in */
        Issuer: {
            issuer: string;
            audience: string;
            /**
             * Format: uri
             * @description Where its key set is, over https
             */
            jwksUrl?: string;
            /** @description Or the key set itself, RFC 7517 */
            keys?: {
                [key: string]: unknown;
            };
        };
        TrailRecord: {
            /** @description One more with every record */
            id: components["schemas"]["Id"];
            at: components["schemas"]["Time"];
            /**
             * @description `operator:1` by the place of the operator's key in the setting, `server:<id of the server
             * key>`
             */
            actor: string;
            /**
             * Format: int64
             * @description The game of the server, null for an operator
             */
            gameId: number | null;
            /**
             * @description The operationId of the operation
             * @example patchGame
             */
            action: string;
            /**
             * @description `user:7`, `game:3`, `asset:4`, `token:GOLD`, `room:<roomId>`; empty when nothing may have
             * been created
             */
            target: string;
            /**
             * @description What has changed, as it was; null for what was created. It was read before the write, so a
             * write at the same time by others can show in it. More than 2 KiB is `{bytes, sha256}`, member by member
             * first
             */
            before: {
                [key: string]: unknown;
            } | null;
            /** @description What has changed, as it is */
            after: {
                [key: string]: unknown;
            } | null;
            /** @description X-Request-Id of the request */
            requestId: string;
            /**
             * @description `unknown`: it failed with 5xx and may have changed something
             * @enum {string}
             */
            outcome: "done" | "unknown";
        };
        Audit: {
            /** @description Whether `sumsAgree` is true and `stopped` is empty */
            balanced: boolean;
            /** @description Whether no unit was made or lost in what the store has, whatever `stopped` has */
            sumsAgree: boolean;
            /**
             * @description Why money does not move, or why some may be missing; an operator accepts a game by `POST
             * /api/v1/admin/games/{gameId}/accept-audit`, the rest by `parlor store accept`
             */
            stopped: {
                /** @description The game; absent for all games */
                gameId?: components["schemas"]["Id"];
                /**
                 * @description `empty`, `foreign` or `older`: the store is not what it was, and all money is stopped.
                 * `loss`: the newest entries of the game are missing, and money goes on. `conservation`: the money of
                 * the game is stopped, because it does not add up. There may be others
                 */
                cause: string;
                /** @description A sentence for operators */
                reason: string;
                /** @description When a node noticed */
                at: components["schemas"]["Time"];
            }[];
            tokens: {
                tokenId: components["schemas"]["TokenCode"];
                minted: components["schemas"]["Amount"];
                mintedAmount: components["schemas"]["Units"];
                wallets: components["schemas"]["Amount"];
                walletsAmount: components["schemas"]["Units"];
                escrow: components["schemas"]["Amount"];
                escrowAmount: components["schemas"]["Units"];
                /** @description Promised prizes */
                prizes: components["schemas"]["Amount"];
                prizesAmount: components["schemas"]["Units"];
                house: components["schemas"]["Amount"];
                houseAmount: components["schemas"]["Units"];
                delta: components["schemas"]["Amount"];
                deltaAmount: components["schemas"]["Units"];
            }[];
            checkedAt: components["schemas"]["Time"];
        };
        /** @description Chosen by the client; without one the replyTo of the reply is null */
        MessageId: string;
        /** @description The id of the request, or null if it had none */
        ReplyTo: string | null;
        /**
         * @description A position among the events of a room, a tournament or a player, such as `12-00abc123`; opaque.
         * Before the first event it is `0-0`
         */
        Position: string;
        /**
         * @description The key of a leaderboard in the game of the player
         * @example weekly
         */
        BoardKey: string;
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
        /**
         * @description Names the room in binary frames of this connection; only with the subprotocol `parlor.v1.bin`
         */
        RoomIndex: number;
        /**
         * @description Neither `.` nor `..`
         * @example main
         */
        Slot: string;
        /**
         * Format: int64
         * @description Of a slot: 1, 2, 3 …
         */
        Version: number;
        /** @description Data of the game: up to 256 KiB and 32 levels, without white space */
        State: {
            [key: string]: unknown;
        };
        /** @description Where the events after the reply begin */
        UserPositions: {
            money: components["schemas"]["Position"];
            progress: components["schemas"]["Position"];
        };
        RoomStart: {
            roomId: components["schemas"]["RoomId"];
            after?: components["schemas"]["Position"];
        };
        OneSlot: {
            slot: components["schemas"]["Slot"];
        };
        Loaded: {
            slot: components["schemas"]["Slot"];
            version: components["schemas"]["Version"];
            state: components["schemas"]["State"];
            savedAt: components["schemas"]["Time"];
            size: number;
        };
        Revision: {
            version: components["schemas"]["Version"];
            savedAt: components["schemas"]["Time"];
            size: number;
        };
        Snapshot: {
            /** @enum {string} */
            mode: "snapshot";
            room: components["schemas"]["Room"];
            position: components["schemas"]["Position"];
        };
        TournamentSnapshot: {
            /** @enum {string} */
            mode: "snapshot";
            tournament: components["schemas"]["Tournament"];
            position: components["schemas"]["Position"];
        };
        TournamentEvent: {
            type: string;
            tournamentId: components["schemas"]["Id"];
            /**
             * Format: int64
             * @description Gap-free and ascending in the tournament
             */
            seq: number;
            position: components["schemas"]["Position"];
            at: components["schemas"]["Time"];
            data: {
                [key: string]: unknown;
            };
        };
        UserEvent: {
            type: string;
            /**
             * Format: int64
             * @description Gap-free and ascending: one numbering for balances and assets, one for progress and matches
             */
            seq: number;
            position: components["schemas"]["Position"];
            at: components["schemas"]["Time"];
            data: {
                [key: string]: unknown;
            };
        };
        RoomCreatedData: {
            code: string;
            gameId: components["schemas"]["Id"];
            creator: components["schemas"]["User"];
            maxPlayers: number;
            /** @description Of the entry token; null in a free room */
            tokenId: string | null;
            roomEntry: components["schemas"]["Amount"];
            roomEntryAmount: components["schemas"]["Units"];
            /** @description Players seated after the change; a snapshot lists them */
            participantCount: number;
            totalWager: components["schemas"]["Amount"];
            totalWagerAmount: components["schemas"]["Units"];
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
        };
        RoomJoinedData: {
            user: components["schemas"]["User"];
            /** @description Players seated after the change; a snapshot lists them */
            participantCount: number;
            totalWager: components["schemas"]["Amount"];
            totalWagerAmount: components["schemas"]["Units"];
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
        };
        RoomLeftData: {
            userId: components["schemas"]["Id"];
            /** @enum {string} */
            reason: "left" | "kicked" | "banned" | "forfeited" | "expired";
            /** @description Players seated after the change; a snapshot lists them */
            participantCount: number;
            totalWager: components["schemas"]["Amount"];
            totalWagerAmount: components["schemas"]["Units"];
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
        };
        RoomReadyData: {
            userId: components["schemas"]["Id"];
            ready: boolean;
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
        };
        RoomHostChangedData: {
            userId: components["schemas"]["Id"];
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
        };
        RoomStartedData: {
            /** @enum {string} */
            by: "host" | "server" | "auto";
            startedAt: components["schemas"]["Time"];
            matchDeadline: components["schemas"]["Time"];
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
        };
        RoomResultData: {
            userId: components["schemas"]["Id"];
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
            /**
             * @description Until when the others may report; then whoever is silent agrees. Absent when no window runs,
             * because the report ends the room or the room is disputed
             */
            until?: components["schemas"]["Time"];
        };
        RoomDisputedData: {
            /** @description When every stake is returned if nobody decides */
            refundAt: components["schemas"]["Time"];
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
        };
        RoomFinishedData: {
            results: components["schemas"]["Result"][];
            payouts: {
                userId: components["schemas"]["Id"];
                /** @description null for a forfeited seat */
                place: number | null;
                payout: components["schemas"]["Amount"];
                amount: components["schemas"]["Units"];
            }[];
            rake: components["schemas"]["Amount"];
            rakeAmount: components["schemas"]["Units"];
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
        };
        RoomCancelledData: {
            /** @enum {string} */
            reason: "host" | "operator" | "server" | "empty" | "idle" | "expired" | "timeout" | "dispute_refunded" | "no_show" | "tournament";
            refunds: components["schemas"]["Refund"][];
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
        };
        RoomStateData: {
            /**
             * Format: int64
             * @description Of the shared state after the change; the version of the room stays the same
             */
            version: number;
            /** @description The values that were set */
            patch: {
                [key: string]: unknown;
            };
            /** @description The names that were removed */
            delete: string[];
        };
        RoomTurnData: {
            /** Format: int64 */
            userId: number | null;
            /** @description By the clock of the service */
            deadline: (string & components["schemas"]["Time"]) | null;
            /**
             * @description The host or the game server gave it, the time of the player before was over, or that player
             * left or was forfeited
             * @enum {string}
             */
            reason: "set" | "skipped" | "left";
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
        };
        RoomConnectedData: {
            userId: components["schemas"]["Id"];
        };
        RoomDisconnectedData: {
            userId: components["schemas"]["Id"];
            graceUntil: components["schemas"]["Time"];
        };
        RoomRematchData: {
            newRoomId: components["schemas"]["RoomId"];
            code: string;
            by: components["schemas"]["Id"];
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
        };
        TournamentOpenedData: {
            /** @enum {string} */
            status: "ANNOUNCED" | "REGISTRATION" | "CHECK_IN";
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
        };
        TournamentJoinedData: {
            user: components["schemas"]["User"];
            entrants: number;
            fees: components["schemas"]["Amount"];
            feesAmount: components["schemas"]["Units"];
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
        };
        TournamentLeftData: {
            userId: components["schemas"]["Id"];
            /** @enum {string} */
            reason: "left" | "disqualified" | "no_check_in" | "disputed";
            entrants: number;
            fees: components["schemas"]["Amount"];
            feesAmount: components["schemas"]["Units"];
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
        };
        TournamentCheckedInData: {
            userId: components["schemas"]["Id"];
            checkedIn: number;
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
        };
        TournamentStartedData: {
            /** @description How many take part */
            players: number;
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
        };
        TournamentRoundStartedData: {
            round: number;
            /** @description How many */
            matches: number;
            /** @description Of a match whose room does not open before */
            deadline: components["schemas"]["Time"];
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
        };
        TournamentMatchReadyData: {
            matchId: string;
            roomId: components["schemas"]["RoomId"];
            attempt: number;
            deadline: components["schemas"]["Time"];
            players: components["schemas"]["MatchPlayer"][];
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
        };
        TournamentMatchDecidedData: {
            matchId: string;
            /**
             * Format: int64
             * @description Null: a draw, or nobody came
             */
            winnerId: number | null;
            /** @enum {string} */
            reason: "played" | "walkover" | "double_forfeit" | "bye" | "disqualified" | "resolved" | "refunded";
            players: components["schemas"]["MatchPlayer"][];
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
        };
        TournamentSettledData: {
            pot: components["schemas"]["Amount"];
            potAmount: components["schemas"]["Units"];
            rake: components["schemas"]["Amount"];
            rakeAmount: components["schemas"]["Units"];
            payouts: components["schemas"]["Payout"][];
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
        };
        TournamentCancelledData: {
            /** @enum {string} */
            reason: "operator" | "server" | "undersubscribed" | "expired" | "unplayed";
            /**
             * Format: int64
             * @description Of the room
             */
            version: number;
        };
        UserBalanceData: {
            tokenId: components["schemas"]["TokenCode"];
            volume: components["schemas"]["Amount"];
            amount: components["schemas"]["Units"];
            held: components["schemas"]["Amount"];
            heldAmount: components["schemas"]["Units"];
            /** @description Of what can be spent; 0 when only stakes changed */
            delta: number;
            deltaAmount: components["schemas"]["Units"];
            /** @description `resync` follows no change: the store lost something, and this is what is there */
            reason: string;
            /** @description What it belongs to: a room, a purchase, or the operator's text */
            ref: string;
        };
        UserAssetData: {
            assetId: components["schemas"]["Id"];
            /** Format: int64 */
            quantity: number;
            /** Format: int64 */
            owned: number;
            purchaseId: components["schemas"]["Id"];
        };
        UserPrizeData: {
            /** @description `board:<board>:<season>` or `tour:<tournament id>` */
            source: string;
            place: number;
            /** @description null: the prize is an asset */
            tokenId: (string & components["schemas"]["TokenCode"]) | null;
            prize: components["schemas"]["Amount"];
            amount: components["schemas"]["Units"];
            /**
             * Format: int64
             * @description null: the prize is units of the token
             */
            assetId: number | null;
            /** Format: int64 */
            quantity: number | null;
            /**
             * Format: int64
             * @description Pieces that the player owns then
             */
            owned: number | null;
        };
        UserProgressData: {
            gameId: components["schemas"]["Id"];
            slot: components["schemas"]["Slot"];
            version: components["schemas"]["Version"];
            savedAt: components["schemas"]["Time"];
            size: number;
            /**
             * Format: int64
             * @description The version whose state this is
             */
            restoredFrom?: number;
        };
        UserMatchData: {
            tournamentId: components["schemas"]["Id"];
            matchId: string;
            roomId: components["schemas"]["RoomId"];
            deadline: components["schemas"]["Time"];
        };
        BoardChangedData: components["schemas"]["BoardState"];
        BoardSeasonStartedData: {
            season: components["schemas"]["Season"];
        };
        BoardSeasonEndedData: {
            season: components["schemas"]["Season"];
        };
        HelloData: {
            connectionId: string;
            userId: components["schemas"]["Id"];
            serverTime: components["schemas"]["Time"];
            /** @enum {integer} */
            protocol: 1;
            limits: {
                /** @description Bytes in one frame of the client */
                frameBytes: number;
                /** @description Frames of the client in a second */
                framesPerSecond: number;
                /** @description Frames of the client at once */
                burst: number;
                /** @description Rooms that a connection may subscribe to */
                subscriptions: number;
                /** @description Rooms in one room.subscribe */
                roomsPerSubscribe: number;
                /** @description Connections of a player to one node, of all kinds */
                sockets: number;
                /** @description Leaderboards that the connection may watch */
                boards: number;
            };
        };
        ServerDrainingData: {
            reconnectInMs: number;
        };
        ServerStaleData: {
            /** @description For how long nothing was heard, in milliseconds; 0: the store is heard again */
            sinceMs: number;
        };
        RoomSnapshotData: components["schemas"]["Snapshot"];
        TournamentSnapshotData: components["schemas"]["TournamentSnapshot"];
        RoomMessageData: {
            from: components["schemas"]["Id"];
            op: string;
            /** @description Any JSON */
            payload: unknown;
            /**
             * @description The payload is bytes, as a string in base64: the sender sent a binary frame
             * @enum {string}
             */
            encoding?: "base64";
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
/** The data of a room's events as this version of the service sends them, by their name in the SDK. */
interface ServiceRoomEvents {
    created: components["schemas"]["RoomCreatedData"];
    joined: components["schemas"]["RoomJoinedData"];
    left: components["schemas"]["RoomLeftData"];
    ready: components["schemas"]["RoomReadyData"];
    hostChanged: components["schemas"]["RoomHostChangedData"];
    started: components["schemas"]["RoomStartedData"];
    result: components["schemas"]["RoomResultData"];
    disputed: components["schemas"]["RoomDisputedData"];
    finished: components["schemas"]["RoomFinishedData"];
    cancelled: components["schemas"]["RoomCancelledData"];
    state: components["schemas"]["RoomStateData"];
    turn: components["schemas"]["RoomTurnData"];
    connected: components["schemas"]["RoomConnectedData"];
    disconnected: components["schemas"]["RoomDisconnectedData"];
    rematch: components["schemas"]["RoomRematchData"];
    message: components["schemas"]["RoomMessageData"];
}
/** The data of the player's own events. */
interface ServiceUserEvents {
    balance: components["schemas"]["UserBalanceData"];
    asset: components["schemas"]["UserAssetData"];
    prize: components["schemas"]["UserPrizeData"];
    progress: components["schemas"]["UserProgressData"];
    match: components["schemas"]["UserMatchData"];
}
/** The data of events to one connection. */
interface ServiceConnectionEvents {
    hello: components["schemas"]["HelloData"];
    draining: components["schemas"]["ServerDrainingData"];
    stale: components["schemas"]["ServerStaleData"];
}
type Schemas = components["schemas"];
/** A player as others see them. `avatar` is null when none is set. */
type User = Schemas["User"];
/** A token with what the player can spend of it (`volume`, `amount`) and holds in stakes. */
type Balance = Schemas["Balance"];
/** A line of the player's ledger. */
type LedgerEntry = Schemas["LedgerEntry"];
/** Something that the game sells. */
type Asset = Schemas["Asset"];
/** An asset and how many of it the player owns. */
type OwnedAsset = Schemas["OwnedAsset"];
/** What a purchase bought, what it cost and the balance after it. */
type Purchase = Schemas["Purchase"];
/** A friend, a request or a blocked player. */
type Friend = Schemas["Friend"];
/** The player's own account. */
type Account = Schemas["Account"];
/** The place of a player in the result of a room. Places count from 1; equal places are a tie. */
type Result = Schemas["Result"];
/** The fields of a room. */
type RoomData = Schemas["Room"];
/** The settings of a new room. Amounts are numbers or decimal strings. */
type CreateRoom = Omit<Partial<Schemas["CreateRoom"]>, "metadata"> & {
    maxPlayers: number;
    /** Anything that the players should know before they join. */
    metadata?: Record<string, unknown>;
};
/** What a save replaced. `savedAt` is ISO 8601, `size` bytes. */
interface Saved {
    slot: string;
    version: number;
    savedAt: string;
    size: number;
    /** The state itself, where it was asked for. */
    state?: object;
}
/** A stored version of a slot. `intact` is false when it cannot be restored. */
type Revision = Schemas["Revision"];
/** A page of a list. `nextCursor` is null at the end. */
interface Page<T> {
    items: T[];
    nextCursor: string | null;
}
/** Which page of a list. `limit` is at most 100. */
interface PageQuery {
    limit?: number;
    cursor?: string;
}
/** Which rooms. Without `status`: those that the player may join. */
interface RoomQuery extends PageQuery {
    status?: Schemas["RoomStatus"];
    entryTokenId?: number;
    maxEntry?: string | number;
    hasSeat?: boolean;
}
/** The bounds that a player has set for stakes of a token. Null is none. */
type TokenLimits = Schemas["TokenLimits"];
/** All bounds of a player. Until `excludedUntil` the player takes part in no paid room. */
interface OwnLimits extends Page<TokenLimits> {
    excludedUntil: string | null;
}
/**
 * A change of the bounds for a token. Amounts are decimals of it. A member that is absent stays as it
 * is, null removes a bound.
 */
interface Limits {
    tokenId: string;
    maxStake?: number | string | null;
    maxOpenRooms?: number | null;
    maxLoss24h?: number | string | null;
    excludedUntil?: string | null;
}
/** Options of a call. */
interface CallOptions {
    /** Ends the call with the code `aborted`. What it changes may have happened. */
    signal?: AbortSignal;
    /** The Idempotency-Key. By default each call makes its own and repeats it. */
    idempotencyKey?: string;
}
/** Options of a listener. */
interface ListenOptions {
    /** Removes the listener. */
    signal?: AbortSignal;
}
/** A purchase whose outcome is not known yet. */
interface PendingPurchase {
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
type State = "idle" | "connecting" | "online" | "reconnecting" | "offline" | "closed";
/** Every event of a room has these beside its own data. */
interface EventBase {
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
    connected: {
        userId: number;
    };
    disconnected: {
        userId: number;
        graceUntil: string;
    };
}
type WireRoomEvents = ServiceRoomEvents & Omit<ContractRoomEvents, keyof ServiceRoomEvents>;
/** A message of another player. */
type MessageOf<M> = {
    [K in keyof M & string]: {
        from: number;
        op: K;
        payload: M[K];
    };
}[keyof M & string];
/** The events of a room, by name. */
type RoomEvents<M = any> = {
    [K in Exclude<keyof WireRoomEvents, "message" | "created">]: EventBase & WireRoomEvents[K];
} & {
    message: EventBase & MessageOf<M>;
    /** After every other event that changed a field of the room. */
    change: EventBase;
    /** Events were lost for good: the room's fields are current again, all at once. */
    resynced: EventBase & {
        room: Room<M>;
    };
};
/** Any event of a room except change, which only repeats another. */
type RoomEvent<M = any> = RoomEvents<M>[Exclude<keyof RoomEvents<M>, "change">];
/** The events of the client, by name. */
interface ParlorEvents {
    state: State;
    /** `persistent` is false when the session will not survive the page. */
    user: {
        user: User;
        persistent: boolean;
    };
    balance: ServiceUserEvents["balance"];
    asset: ServiceUserEvents["asset"];
    /** A prize of a leaderboard's season or of a tournament, after the balance or the asset that it changed. */
    prize: ServiceUserEvents["prize"];
    progress: ServiceUserEvents["progress"];
    /** A match of the player, which waits in a room: `parlor.rooms.join(e.roomId)`. */
    match: ServiceUserEvents["match"];
    draining: ServiceConnectionEvents["draining"];
    /** Events are late: the node hears nothing from its store. With `sinceMs` 0 it does again, and what was missed follows. */
    stale: ServiceConnectionEvents["stale"];
    /** What no call could report: a listener that threw, a refused message, a purchase that failed late. */
    error: ParlorError | Error;
}
/** State that all players of a room share. */
interface Shared {
    /** The state now. Change it with `set` only. */
    readonly value: Record<string, unknown>;
    /**
     * Sets the members of `patch` and removes those of `delete`. Resolves with the new version. Where
     * somebody else was first, it is tried again on their state, three times; then it rejects with
     * version_conflict.
     */
    set(patch: Record<string, unknown>, o?: {
        delete?: string[];
    }): Promise<number>;
}
/** Options of a message. */
interface SendOptions {
    /** The ids of the players who receive it; all others by default. */
    to?: number[];
    /** Drop it when it cannot be sent at once. */
    volatile?: boolean;
    /** Of such messages with this name that wait for a slow player, only the newest is kept. */
    latest?: boolean;
}
/**
 * A room whose fields change in place, in the order of events and before listeners run. The
 * promise of a call settles once the events that it caused have been heard.
 */
interface Room<M = any> extends Omit<RoomData, "shared" | "turn"> {
    /** Adds a listener, and returns the function that removes it. */
    on<K extends keyof RoomEvents<M>>(event: K, fn: (e: RoomEvents<M>[K]) => void, o?: ListenOptions): () => void;
    /** Resolves with the next such event. Rejects with `aborted` or `closed`. */
    once<K extends keyof RoomEvents<M>>(event: K, o?: ListenOptions): Promise<RoomEvents<M>[K]>;
    /** Iterates over events from now on. At most 1,000 wait to be read; then it throws `queue_full`. */
    events(o?: ListenOptions): AsyncIterable<RoomEvent<M>>;
    /** Rejects with already_started, not_participant, room_closed. */
    setReady(ready?: boolean): Promise<Room<M>>;
    /** For the host. Rejects with not_host, not_enough_players, already_started, room_closed. */
    start(): Promise<Room<M>>;
    /** Before the start the stake comes back; after it the seat is forfeited. Rejects with room_disputed. */
    leave(): Promise<Room<M>>;
    /** For the host, before the start. Every stake comes back. Rejects with not_host, already_started. */
    cancel(): Promise<Room<M>>;
    /**
     * In a consensus room: reports what this player saw, once. The room is finished when all players
     * report the same places, and disputed when they do not. Rejects with not_started, result_conflict.
     */
    finish(results: Result[]): Promise<Room<M>>;
    /** Opens a room with the same settings and reserved seats, or joins the one that is open. */
    rematch(): Promise<Room<M>>;
    /** For the host. Rejects with not_host, not_participant. */
    kick(userId: number, o?: {
        ban?: boolean;
    }): Promise<Room<M>>;
    /** For the host. Rejects with not_host, not_participant. */
    makeHost(userId: number): Promise<Room<M>>;
    /**
     * Sends a message to the other players: not stored, at most once, in order. While there is no
     * connection it waits, 10 s at most. Throws payload_too_large above 16 KiB, and queue_full when 64
     * messages or 256 KB wait, or the oldest has waited for 10 s.
     */
    send<K extends keyof M & string>(op: K, payload: M[K], o?: SendOptions): void;
    /**
     * For the host: gives a player the turn for some seconds, null ends the turns. At the deadline the
     * service gives it to the next player. Rejects with not_host, not_started, not_participant.
     */
    setTurn(userId: number | null, seconds?: number): Promise<Room<M>>;
    /** Whose turn it is; absent or null for nobody. Compare the deadline with `parlor.time()`. */
    readonly turn?: {
        userId: number;
        deadline: string;
    } | null;
    /** State that all players of the room share. */
    readonly shared: Shared;
}
/** Finds, opens and joins rooms. All of a client's calls for one room give the same object. */
interface Rooms<M = any> {
    /** Opens a room and takes its entry. Rejects with insufficient_funds, invalid_amount, token_not_found. */
    create(input: CreateRoom, o?: CallOptions): Promise<Room<M>>;
    /** Takes a seat. Rejects with room_full, room_closed, already_started, insufficient_funds, banned. */
    join(room: string | {
        code: string;
    }, o?: CallOptions): Promise<Room<M>>;
    /** Follows a room without a seat, or one that the player has. Rejects with room_not_found. */
    get(room: string | {
        code: string;
    }): Promise<Room<M>>;
    list(query?: RoomQuery): Promise<Page<RoomData>>;
    /** The rooms that have not ended and in which the player has a seat. */
    mine(): Promise<Room<M>[]>;
    /** Joins an open room with the same settings, else opens one. */
    quick(input: CreateRoom, o?: CallOptions): Promise<Room<M>>;
}
/** The player's saves. A slot's name has 1 to 64 characters of A-Z, a-z, 0-9, `_`, `.` and `-`. */
interface Progress {
    /**
     * Makes `state` the newest version. Calls within 500 ms are one save, the newest. It waits in
     * storage while there is no connection, also for the next page. When somebody else saved
     * meanwhile, `merge` gives the state to save instead; without it the call rejects with
     * version_conflict and `data: {mine, theirs, version}`.
     */
    save<T extends object>(slot: string, state: T, o?: {
        merge?: (mine: T, theirs: T) => T | Promise<T>;
    }): Promise<Saved>;
    /** Resolves with null for a slot that was never saved. */
    load(slot: string): Promise<(Saved & {
        state: any;
    }) | null>;
    list(): Promise<Saved[]>;
    /** The last five versions, newest first. */
    history(slot: string): Promise<Revision[]>;
    /** Makes an older state the newest version. */
    restore(slot: string, version: number): Promise<Saved>;
}
/** The player's money. Amounts are exact: `volume` as number, `amount` in minor units as string. */
interface Wallet {
    balances(): Promise<Balance[]>;
    /** Rejects with token_not_found. */
    balance(tokenId: string): Promise<Balance>;
    ledger(query?: PageQuery & {
        tokenId?: string;
    }): Promise<Page<LedgerEntry>>;
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
interface Store {
    assets(query?: PageQuery): Promise<Page<Asset>>;
    /**
     * Buys an asset, once, however often it is sent. Rejects with insufficient_funds, price_changed,
     * sold_out, already_owned: then nothing was bought. Rejects with offline, timeout or
     * outcome_unknown when that is not known: then `pending` lists it until it is settled.
     */
    buy(assetId: number, o?: {
        quantity?: number;
        expectedPrice?: number | string;
    }): Promise<Purchase>;
    owned(query?: PageQuery): Promise<Page<OwnedAsset>>;
    /** The purchases whose outcome is not known yet. */
    pending(): Promise<PendingPurchase[]>;
}
/** Friends, requests and blocked players. */
interface Friends {
    list(query?: PageQuery): Promise<Page<Friend>>;
    /** Asks for friendship, or accepts it. */
    add(userId: number): Promise<Friend>;
    /** Ends a friendship, declines a request, lifts a block. */
    remove(userId: number): Promise<void>;
    block(userId: number): Promise<Friend>;
}
/** The player's own account. */
interface OwnAccount {
    rename(username: string): Promise<Account>;
    /** An https address, or null for none. */
    avatar(url: string | null): Promise<Account>;
    /** An access token for the game's own server, to which `GET /api/v1/me` tells whose it is. */
    token(): Promise<string>;
    /** Makes a guest a lasting account. Rejects with already_linked. */
    link(proof: {
        externalToken: string;
    } | {
        deviceSecret: string;
    }): Promise<Account>;
    /** Ends the session on this device and closes the client. A guest cannot come back. */
    signOut(): Promise<void>;
    /** Deletes the account for good and closes the client. Rejects with money_held. */
    remove(): Promise<void>;
}
/** A player of a game, signed in and connected. */
interface Parlor<M = any> {
    /** Signed in and online once. Rejects only for what will not mend. */
    readonly ready: Promise<Parlor<M>>;
    readonly state: State;
    readonly user: User | null;
    /** Adds a listener, and returns the function that removes it. */
    on<K extends keyof ParlorEvents>(event: K, fn: (e: ParlorEvents[K]) => void, o?: ListenOptions): () => void;
    readonly rooms: Rooms<M>;
    readonly progress: Progress;
    readonly wallet: Wallet;
    readonly store: Store;
    readonly friends: Friends;
    readonly account: OwnAccount;
    /** The service's clock, in ms since 1970. */
    time(): number;
    /** Ends the connection. Unfinished calls reject with `closed`. */
    close(): void;
}
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
    list(query?: TournamentQuery): Promise<Page<Tournament>>;
    /** Rejects with tournament_not_found, as every call with an id. */
    get(tournamentId: number): Promise<Tournament>;
    entrants(tournamentId: number, query?: PageQuery): Promise<Page<Entrant>>;
    matches(tournamentId: number, query?: PageQuery & {
        round?: number;
    }): Promise<Page<Match>>;
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
