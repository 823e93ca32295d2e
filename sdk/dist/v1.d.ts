/** The codes of errors that the service reports. A code is never renamed. */
export type ServiceCode = 
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
/** 404: No such call waits for an answer of this server */
 | "call_not_found"
/** 404: The game has no such webhook */
 | "webhook_not_found"
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
/** 422: The game's server refused the call */
 | "game_error"
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
 | "outcome_unknown"
/** 503: No server of the game takes calls for this room now */
 | "no_server"
/** 504: The game's server did not answer in time */
 | "server_timeout";
/** The codes of errors that the SDK itself reports. */
export type ClientCode = 
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
/** A call of the service as the devtools recorded it. Tokens and secrets in it are "…". */
export interface DebugCall {
    /** Ascending over calls and events. */
    readonly n: number;
    /** When it was sent, in ms since 1970. */
    readonly at: number;
    readonly kind: "http" | "socket";
    /** The method of an HTTP call, else "". */
    readonly method: string;
    /** The address without that of the service, or the type of a message. */
    readonly path: string;
    /** The id of a message. One without an id gets no reply. */
    readonly id?: string;
    readonly idempotencyKey?: string;
    readonly request?: unknown;
    readonly sentBytes: number;
    requestId?: string;
    /** The HTTP status, or that of a message that was refused. */
    status?: number;
    /** The code of an error. */
    code?: string;
    response?: unknown;
    receivedBytes?: number;
    ms?: number;
    /** Why there is no reply. */
    failure?: string;
}
/** An event of the service as the devtools recorded it. */
export interface DebugEvent {
    readonly n: number;
    /** When it came, in ms since 1970. */
    readonly at: number;
    readonly name: string;
    readonly roomId?: string;
    /** The position in its room. */
    readonly seq?: number;
    readonly bytes: number;
    readonly data: unknown;
    /** Whether it was lost on purpose, by `loss`. */
    readonly lost?: true;
}
/** The devtools of a client: `parlor.debug`. */
export interface Debug {
    /** The last 500 calls, oldest first. */
    readonly calls: readonly DebugCall[];
    /** The last 500 events, oldest first. */
    readonly events: readonly DebugEvent[];
    /** Added to each message and reply, in ms. */
    latencyMs: number;
    /** The part of the events of rooms that is lost on its way to the page, 0 to 1. */
    loss: number;
    /** Whether the network is cut. */
    readonly isCut: boolean;
    /** Cuts the network until `resume`. With `offline` the browser also says that it is offline. */
    cut(o?: {
        offline?: boolean;
    }): void;
    /** Ends the cut. The SDK connects again. */
    resume(): void;
    /** Drops the connections once. The SDK connects again. */
    disconnect(): void;
    /** Returns a test for Node that repeats the HTTP calls and expects the same statuses and codes. */
    writeTest(): string;
    /** Shows the panel in an element of the page. By default it floats above the page. */
    mount(element: Element): void;
}
interface components {
    schemas: {
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
             * Format: double
             * @description The highest stake of one room
             * @example 2.5
             */
            maxStake: number | null;
            /** @description The same in minor units */
            maxStakeAmount: string | null;
            /** @description Rooms with a stake of the token at once */
            maxOpenRooms: number | null;
            /**
             * Format: double
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
             * Format: double
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
                /**
                 * Format: double
                 * @description Null is no limit
                 */
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
        Revision: {
            version: components["schemas"]["Version"];
            savedAt: components["schemas"]["Time"];
            size: number;
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
    message: components["schemas"]["UserMessageData"];
}
/** The data of events to one connection. */
interface ServiceConnectionEvents {
    hello: components["schemas"]["HelloData"];
    draining: components["schemas"]["ServerDrainingData"];
    stale: components["schemas"]["ServerStaleData"];
}
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
    connected: {
        userId: number;
    };
    disconnected: {
        userId: number;
        graceUntil: string;
    };
}
type WireRoomEvents = ServiceRoomEvents & Omit<ContractRoomEvents, keyof ServiceRoomEvents>;
/**
 * A message of another player. The game's server may send messages too, if it is made to: `from` is null
 * then, although its type is a number, so that a game without such messages need not ask.
 */
export type MessageOf<M> = {
    [K in keyof M & string]: {
        from: number;
        op: K;
        payload: M[K];
    };
}[keyof M & string];
/** The events of a room, by name. */
export type RoomEvents<M = any> = {
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
export type RoomEvent<M = any> = RoomEvents<M>[Exclude<keyof RoomEvents<M>, "change">];
/** The events of the client, by name. */
export interface ParlorEvents {
    /** Where the connection stands now. */
    state: State;
    /** `persistent` is false when the session will not survive the page. */
    user: {
        user: User;
        persistent: boolean;
    };
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
    message: {
        op: string;
        payload: any;
    };
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
    set(patch: Record<string, unknown>, o?: {
        delete?: string[];
    }): Promise<number>;
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
    kick(userId: number, o?: {
        ban?: boolean;
    }): Promise<Room<M>>;
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
    readonly turn?: {
        userId: number;
        deadline: string;
    } | null;
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
    join(room: string | {
        code: string;
    }, o?: CallOptions): Promise<Room<M>>;
    /** Follows a room without a seat, or one that the player has. Rejects with room_not_found. */
    get(room: string | {
        code: string;
    }): Promise<Room<M>>;
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
    save<T extends object>(slot: string, state: T, o?: {
        merge?: (mine: T, theirs: T) => T | Promise<T>;
    }): Promise<Saved>;
    /** Resolves with null for a slot that was never saved. */
    load(slot: string): Promise<(Saved & {
        state: any;
    }) | null>;
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
export interface Store {
    /** A page of what the game sells. */
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
/**
 * Returns the client of a game at once. It signs in and connects by itself; `await init(…)` waits
 * for that. The same `gameId` and `baseUrl` give the same client. Throws a TypeError when an option
 * is missing or of a wrong type.
 */
export declare function init<Messages = any>(options: Options): Parlor<Messages> & PromiseLike<Parlor<Messages>>;

export {};

export as namespace Parlor;
