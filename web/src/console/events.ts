// The events of a room in sentences, in the words of `parlor dev` (cmd/parlor/dev_events.go).
import type { WireType } from "../../../sdk/src/generated/events";
import { formatUnits } from "./format";
import type { Room, RoomEvent, User } from "./types";

/** Why a room was cancelled. */
export const cancelReasons: Record<string, string> = {
  host: "by its host", operator: "by the operator", server: "by the game's server", empty: "everybody left",
  idle: "nothing happened for too long", expired: "it did not start in time", timeout: "no result in time",
  dispute_refunded: "the dispute was not decided", no_show: "somebody was not there at the deadline", tournament: "by its tournament",
};

/** The data of an event, as far as a sentence needs it. */
interface Data {
  creator?: User; user?: User; userId?: number | null; by?: string; reason?: string; ready?: boolean; code?: string;
  maxPlayers?: number; roomEntryAmount?: string; totalWagerAmount?: string;
  payouts?: { userId: number; amount: string }[]; patch?: object; delete?: string[];
}

type RoomType = Exclude<Extract<WireType, `room.${string}`>, "room.snapshot" | "room.message">; // those are in no list

interface Say { name: (user: number) => string; amount: (units: string | undefined) => string; isFree: boolean }

const who = (d: Data, say: Say) => say.name(d.userId ?? 0);

const sentences: Record<RoomType, (d: Data, say: Say) => string> = {
  "room.created": (d, say) =>
    `${d.creator?.username} opened the room: ${d.maxPlayers} seats, ${say.isFree ? "free" : `entry ${say.amount(d.roomEntryAmount)}`}`,
  "room.joined": (d, say) => `${d.user?.username} joined${say.isFree ? "" : `: the pot is ${say.amount(d.totalWagerAmount)}`}`,
  "room.left": (d, say) => `${who(d, say)} left${d.reason === "left" ? "" : ` (${d.reason})`}`,
  "room.ready": (d, say) => `${who(d, say)} is ${d.ready ? "ready" : "not ready"}`,
  "room.host_changed": (d, say) => `${who(d, say)} is the host now`,
  "room.started": (d) => `the room started${d.by === "auto" ? " by itself" : ` by the ${d.by}`}`,
  "room.result": (d, say) => `${who(d, say)} reported the result`,
  "room.disputed": () => "the reports differ: the pot is frozen until the console decides",
  "room.finished": (d, say) => {
    const won = say.isFree ? [] : (d.payouts ?? []).filter((p) => p.amount !== "0")
      .map((p) => `${say.name(p.userId)} won ${say.amount(p.amount)}`);
    return `the room finished${won.length > 0 ? `: ${won.join(", ")}` : ""}`;
  },
  "room.cancelled": (d, say) =>
    `the room was cancelled: ${cancelReasons[d.reason ?? ""] ?? d.reason}${say.isFree ? "" : "; every stake is back"}`,
  "room.state": (d) => {
    const gone = d.delete ?? [];
    return `the shared state changed: ${[...Object.keys(d.patch ?? {}), ...gone.map((key) => `${key} is gone`)].join(", ")}`;
  },
  "room.turn": (d, say) => {
    if (!d.userId) return "nobody has the turn";
    return `it is ${who(d, say)}'s turn${d.reason === "skipped" ? ": the time of the one before was over" : ""}`;
  },
  "room.connected": (d, say) => `${who(d, say)} is connected`,
  "room.disconnected": (d, say) => `${who(d, say)} is disconnected`,
  "room.rematch": (d) => `a rematch was opened: room ${d.code}`,
};

/** Returns what players are called in a room, those who left it included. */
export function playersOf(room: Room, events: RoomEvent[]): (user: number) => string | undefined {
  const users = new Map(room.participants.map((p) => [p.id, p.username]));
  for (const { creator, user } of events.map((e) => e.data as Data)) {
    for (const u of [creator, user]) if (u) users.set(u.id, u.username);
  }
  return (id) => users.get(id);
}

/** Returns an event of a room as a sentence, its type for one of a newer node. */
export function sentenceOf(event: RoomEvent, room: Room, nameOf: (user: number) => string | undefined): string {
  const token = room.entryToken;
  const say: Say = {
    name: (user) => nameOf(user) ?? `player #${user}`, isFree: !token,
    amount: (units) => token ? `${formatUnits(units ?? "0", Number(token.metadata.decimals))} ${token.tokenId}` : "",
  };
  return (sentences as Partial<Record<string, (d: Data, say: Say) => string>>)[event.type]?.(event.data as Data, say) ?? event.type;
}
