// What the console reads of the API; openapi.yaml has the whole.
export interface Page<T> { items: T[]; nextCursor: string | null }
export interface User { id: number; username: string; avatar: string | null }
export interface Player extends User {
  gameId: number; kind: string; createdAt: string; suspended: { reason: string; until: string | null } | null;
}
export interface Token {
  id: number; tokenId: string; tokenName: string; logoUrl: string | null; volume: number;
  metadata: { assetName: string; policyId: string; decimals: string };
  games?: { gameId: number; mintLimitPerDay: number }[];
}
export interface Balance extends Token { amount: string; held: number; heldAmount: string }
export interface Seat { userId: number; state: string; ready: boolean; joinedAt: string }
export interface Presence { userId: number; connected: boolean; graceUntil?: string }
export interface Shared { version: number; value: Record<string, unknown> }
export interface Room {
  id: number; roomId: string; gameId: number; entryToken: Token | null; roomEntry: number; totalWager: number;
  roomEntryAmount?: string; totalWagerAmount?: string; creator: User; host: User; participants: User[]; seats: Seat[];
  presence?: Presence[];
  shared?: Shared; turn?: { userId: number; deadline: string };
  maxPlayers: number; minPlayers: number; isFriendsOnly: boolean; visibility?: string; status: string; code?: string;
  createdAt: string; startedAt: string | null; finishedAt: string | null; version: number; seq: number;
  settlement: string; metadata: object; reason?: string | null; rakeBps?: number; rakeAmount?: string; rematchRoomId?: string | null;
  results?: { userId: number; place: number; score?: number }[] | null;
  payouts?: { userId: number; place: number | null; payout: number; amount: string }[] | null;
  refunds?: { userId: number; refund: number; amount: string }[] | null;
  disputedAt?: string | null; refundAt?: string | null; reportUntil?: string | null; reportedBy?: number[];
  reports?: { userId: number; results: { userId: number; place: number; score?: number }[]; disputesLost?: number }[];
}
export interface Limits {
  tokenId: string; maxStakeAmount: string | null; maxOpenRooms: number | null; maxLoss24hAmount: string | null;
  openRooms: number | null; lost24hAmount: string | null;
  pending: { limit: string; value: number | null; valueAmount: string | null; from: string }[];
}
export interface RoomEvent { type: string; seq: number; at: string; data: Record<string, unknown> }
export interface Line {
  id: number; at: string; tokenId: string; delta: number; deltaAmount: string; balanceAfter: number;
  balanceAfterAmount: string; reason: string; ref: string;
}
export interface Save { slot: string; version: number; savedAt: string; size: number }
export interface PlayerSession {
  startedAt: string; refreshedAt: string | null; expiresAt: string; serverKeyId: string | null;
}
export interface Game {
  id: number; name: string; origins: string[]; createdAt: string; version: number;
  welcomeGrant: { tokenId: string; amount: number; for: string } | null;
  settings: Record<string, unknown>; serverKeys: { id: string; createdAt: string }[];
  use?: Record<string, { used: number; max: number }>;
}
export interface Webhook {
  webhookId: string; gameId: number; url: string; kinds: string[]; description: string; active: boolean; createdAt: string;
  version: number; state: "ok" | "failing" | "disabled"; lagSeconds: number; waitingRooms: number; parked: number;
  lastError: string | null;
}
export interface WebhookAttempt {
  at: string; state: "delivered" | "failed" | "parked" | "test"; id: string; type: string; roomId: string; attempt: number;
  status: number; milliseconds: number; error: string | null; response: string;
}
export interface ActivitySample { at: string; rooms: number; players: number; pots: { tokenId: string; potAmount: string }[] }
export interface Asset {
  id: number; gameId: number; name: string; tokenId: string; price: number; priceAmount: string; stock: number | null;
  perUserLimit: number | null; sold: number; active: boolean; metadata: object; version: number; createdAt: string;
}
export interface Season {
  season: number; status: string; opensAt: string; closesAt: string | null; entries: number; prizesFunded: boolean | null;
  prizesPromisedBy?: string;
}
export interface Board {
  gameId: number; board: string; name: string; order: string; operator: string; decimals: number; subscore: object | null;
  writers: string[]; schedule: { cron?: string; timeZone?: string; everySeconds?: number } | null; season: Season;
  prizes?: object | null;
}
export interface BoardEntry {
  rank: number; user: User; score: number; subscore: number | null; reachedAt: string; submissions: number; hidden?: boolean;
  evidence: { roomId?: string; url?: string; digest?: string } | null;
}
export interface Tournament {
  tournamentId: number; gameId: number; name: string; format: string; status: string; reason: string | null; version: number;
  entryToken: Token | null; entryFeeAmount: string; addedPrize: { from: string } | null; addedPrizeAmount: string;
  potAmount: string; rakeAmount: string; rakeBps: number; payout: number[]; minEntrants: number; maxEntrants: number;
  entrants: number; checkedIn: number; round: number; registrationOpensAt: string; checkInOpensAt: string | null;
  startsAt: string; endsAt: string | null; startedAt: string | null; endedAt: string | null;
}
export interface Entrant {
  user: User; seed: number | null; joinedAt: string; checkedInAt: string | null; status: string;
  place: number | null; amount: string | null;
}
export interface Match {
  matchId: string; players: { userId: number; seed: number }[]; status: string; roomId: string | null;
  winnerId: number | null; reason: string | null; deadline: string | null;
}
export interface Standing {
  place: number; user: User; points: number; wins: number; draws: number; losses: number; amount: string | null;
}
export interface Audit {
  balanced: boolean; checkedAt: string;
  sumsAgree?: boolean; // both are absent in the reply of an older node
  stopped?: { gameId?: number; cause: string; reason: string; at: string }[];
  tokens: ({ tokenId: string } & Record<`${AuditPart}Amount`, string>)[];
}
export type AuditPart = "minted" | "wallets" | "escrow" | "prizes" | "house" | "delta";
export interface Entry {
  id: number; at: string; tokenId: string; reason: string; ref: string;
  postings: { account: string; userId: number | null; delta: number; deltaAmount: string }[];
}
export interface Act {
  id: number; at: string; actor: string; gameId: number | null; action: string; target: string; before: unknown; after: unknown;
  requestId: string; outcome: "done" | "unknown";
}
export interface Node {
  id: string; host: string; version: string; commit: string; startedAt: string; at: string; draining: boolean; sockets: number;
  oldestLayout: number; newestLayout: number; layout: number; // of the store: that the node reads, and writes; 0 of v0.9.0
  durability: string; durabilityMode: string; // what holds now, and what should
  topics: number; players: number; goroutines: number; memoryBytes: number; lagMicros: number; requests: number; failures: number;
  deliveries: number;
  recent: {
    intervalSeconds: number; until: string; requests: number[]; failures: number[]; deliveries: number[];
    sockets: number[]; lagMicros: number[]; ledgerEntries: number[]; moved: Record<string, string[]>;
  };
}
