import type { ClientCode, ServiceCode } from "./v1.cjs";
/** Every code of a ParlorError. */
export type Code = ServiceCode | ClientCode;
/** An error of the service or of the way to it. Every promise of the SDK rejects with one. */
export declare class ParlorError extends Error {
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
        MatchPlayer: {
            userId: components["schemas"]["Id"];
            seed: number;
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
        /** @enum {string} */
        RoomStatus: "CREATED" | "STARTED" | "FINISHED" | "CANCELLED" | "DISPUTED";
        Result: {
            userId: components["schemas"]["Id"];
            /** @description From 1; equal places are a tie */
            place: number;
            /** Format: double */
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
        /**
         * @description A position among the events of a room, a tournament or a player, such as `12-00abc123`; opaque.
         * Before the first event it is `0-0`
         */
        Position: string;
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
         * @description Neither `.` nor `..`
         * @example main
         */
        Slot: string;
        /**
         * Format: int64
         * @description Of a slot: 1, 2, 3 …
         */
        Version: number;
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
            /**
             * Format: double
             * @description Of what can be spent; 0 when only stakes changed
             */
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
            /**
             * Format: int64
             * @description Who sent it; null: the game's server
             */
            from: number | null;
            op: string;
            /** @description Any JSON */
            payload: unknown;
            /**
             * @description The payload is bytes, as a string in base64: the sender sent a binary frame
             * @enum {string}
             */
            encoding?: "base64";
        };
        UserMessageData: {
            /** @description Name of the message; the game chooses it */
            op: string;
            /** @description Any JSON */
            payload: unknown;
        };
    };
}
/** The data of every event, by its type on the wire. */
interface ServiceEvents {
    "room.created": components["schemas"]["RoomCreatedData"];
    "room.joined": components["schemas"]["RoomJoinedData"];
    "room.left": components["schemas"]["RoomLeftData"];
    "room.ready": components["schemas"]["RoomReadyData"];
    "room.host_changed": components["schemas"]["RoomHostChangedData"];
    "room.started": components["schemas"]["RoomStartedData"];
    "room.result": components["schemas"]["RoomResultData"];
    "room.disputed": components["schemas"]["RoomDisputedData"];
    "room.finished": components["schemas"]["RoomFinishedData"];
    "room.cancelled": components["schemas"]["RoomCancelledData"];
    "room.state": components["schemas"]["RoomStateData"];
    "room.turn": components["schemas"]["RoomTurnData"];
    "room.connected": components["schemas"]["RoomConnectedData"];
    "room.disconnected": components["schemas"]["RoomDisconnectedData"];
    "room.rematch": components["schemas"]["RoomRematchData"];
    "tournament.opened": components["schemas"]["TournamentOpenedData"];
    "tournament.joined": components["schemas"]["TournamentJoinedData"];
    "tournament.left": components["schemas"]["TournamentLeftData"];
    "tournament.checked_in": components["schemas"]["TournamentCheckedInData"];
    "tournament.started": components["schemas"]["TournamentStartedData"];
    "tournament.round_started": components["schemas"]["TournamentRoundStartedData"];
    "tournament.match_ready": components["schemas"]["TournamentMatchReadyData"];
    "tournament.match_decided": components["schemas"]["TournamentMatchDecidedData"];
    "tournament.settled": components["schemas"]["TournamentSettledData"];
    "tournament.cancelled": components["schemas"]["TournamentCancelledData"];
    "user.balance": components["schemas"]["UserBalanceData"];
    "user.asset": components["schemas"]["UserAssetData"];
    "user.prize": components["schemas"]["UserPrizeData"];
    "user.progress": components["schemas"]["UserProgressData"];
    "user.match": components["schemas"]["UserMatchData"];
    "board.changed": components["schemas"]["BoardChangedData"];
    "board.season_started": components["schemas"]["BoardSeasonStartedData"];
    "board.season_ended": components["schemas"]["BoardSeasonEndedData"];
    "hello": components["schemas"]["HelloData"];
    "server.draining": components["schemas"]["ServerDrainingData"];
    "server.stale": components["schemas"]["ServerStaleData"];
    "room.snapshot": components["schemas"]["RoomSnapshotData"];
    "tournament.snapshot": components["schemas"]["TournamentSnapshotData"];
    "room.message": components["schemas"]["RoomMessageData"];
    "user.message": components["schemas"]["UserMessageData"];
}
type Schemas = components["schemas"];
/** A player as others see them. `avatar` is null when none is set. */
export type User = Schemas["User"];
/** The place of a player in the result of a room. Places count from 1; equal places are a tie. */
export type Result = Schemas["Result"];
/** The fields of a room. */
export type RoomData = Schemas["Room"];
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
type FeedRoomType = "room.created" | "room.joined" | "room.left" | "room.ready" | "room.host_changed" | "room.started" | "room.result" | "room.disputed" | "room.finished" | "room.cancelled" | "room.rematch";
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
export type RoomRef = string | {
    roomId: string;
};
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
/** Keeps positions in a file, which is replaced as a whole. Its folder must exist. */
export declare function filePositions(path: string): PositionStore;
/** A webhook whose signature is right. */
export interface Webhook {
    /** Of the event, the same in every attempt: an id that was handled before needs no more work. */
    id: string;
    /** Such as `room.started`. */
    type: string;
    /** When it happened, ISO 8601. */
    timestamp: string;
    data: any;
}
/** The headers of a request: of Node, of fetch, or any object with lower-case names. */
export type WebhookHeaders = {
    get(name: string): string | null;
} | Record<string, string | string[] | undefined>;
/**
 * Checks a webhook by the Standard Webhooks form, and returns what it says. `body` is the body as it came,
 * before any parser. `secret` is `whsec_…`, or a list of such, one of which has to fit. Throws a ParlorError
 * `unauthenticated` with the status 401 when no signature fits, or it is older or newer than 5 minutes.
 */
export declare function verifyWebhook(headers: WebhookHeaders, body: string | Uint8Array, secret: string | string[]): Webhook;
/** The error of a call: the player's `room.call` rejects with game_error, and `code` is its `data.gameCode`. */
export declare class GameError extends Error {
    /** 1 to 40 characters of a-z and `_`. */
    readonly code: string;
    /** A sentence for the player. */
    readonly detail?: string;
    constructor(code: string, detail?: string);
}
/**
 * Returns the server of a game at once. It dials out to the node, and connects and comes back by itself:
 * it needs no address of its own. Throws a TypeError when an option is missing or of a wrong type.
 */
export declare function server(options: ServerOptions): Server;

export {};
