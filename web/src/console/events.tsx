// The events of a room: reading them, and what happened in sentences, in the words of `parlor dev` (cmd/parlor/dev_events.go).
import type { WireType } from "../../../sdk/src/generated/events";
import { useEffect, useRef, useState } from "preact/hooks";
import { call, Problem, withQuery } from "./api";
import { formatUnits } from "./format";
import type { Room, RoomEvent, User } from "./types";
import { ProblemNote, Table, Time } from "./ui";

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

const shorten = (text: string) => (text.length > 60 ? text.slice(0, 59) + "…" : text);

const who = (d: Data, say: Say) => say.name(d.userId ?? 0);

const sentences: Record<RoomType, (d: Data, say: Say) => string> = {
  "room.created": (d, say) =>
    `${d.creator?.username} opened the room: ${d.maxPlayers} seats, ${say.isFree ? "free" : `entry ${say.amount(d.roomEntryAmount)}`}`,
  "room.joined": (d, say) => `${d.user?.username} joined${say.isFree ? "" : `: the pot is ${say.amount(d.totalWagerAmount)}`}`,
  "room.left": (d, say) => `${who(d, say)} left${d.reason === "left" ? "" : ` (${d.reason})`}`,
  "room.ready": (d, say) => `${who(d, say)} is ${d.ready ? "ready" : "not ready"}`,
  "room.host_changed": (d, say) => `${who(d, say)} is the host now`,
  "room.started": (d) => ({ host: "The host started the room", server: "The game's server started the room" })[d.by!] ?? "The room started by itself",
  "room.result": (d, say) => `${who(d, say)} reported the result`,
  "room.disputed": () => "The reports differ: the pot is frozen until the console decides",
  "room.finished": (d, say) => {
    const won = say.isFree ? [] : (d.payouts ?? []).filter((p) => p.amount !== "0")
      .map((p) => `${say.name(p.userId)} won ${say.amount(p.amount)}`);
    return `The room finished${won.length > 0 ? `: ${won.join(", ")}` : ""}`;
  },
  "room.cancelled": (d, say) =>
    `The room was cancelled: ${cancelReasons[d.reason ?? ""] ?? d.reason}${say.isFree ? "" : "; every stake is back"}`,
  "room.state": (d) => {
    const set = Object.entries(d.patch ?? {}).map(([name, value]) => `${name} is ${shorten(JSON.stringify(value))}`);
    return `The shared state changed: ${[...set, ...(d.delete ?? []).map((name) => `${name} is gone`)].join(", ")}`;
  },
  "room.turn": (d, say) => {
    if (!d.userId) return "Nobody has the turn";
    return `It is ${who(d, say)}'s turn${d.reason === "skipped" ? ": the time of the one before was over" : ""}`;
  },
  "room.connected": (d, say) => `${who(d, say)} is connected`,
  "room.disconnected": (d, say) => `${who(d, say)} is disconnected`,
  "room.rematch": (d) => `A rematch was opened: room ${d.code}`,
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

/** The events of a room that are kept. `newest` is the number of the last one. */
export interface Events { events: RoomEvent[]; complete: boolean; problem: Problem | null; newest: number }

/** Reads the events of a room, and asks for new ones each second while it is shown. */
export function useEvents(id: string): Events {
  const [state, setState] = useState<{ events: RoomEvent[]; complete: boolean; problem: Problem | null }>(
    { events: [], complete: true, problem: null });
  const known = useRef<RoomEvent[]>([]);
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    const read = async () => {
      const after = known.current.at(-1)?.seq;
      const path = withQuery(`/api/v1/admin/rooms/${id}/events`, { after });
      try {
        const page = await call<{ items: RoomEvent[]; complete: boolean }>("GET", path, undefined, undefined, stop.signal);
        if (page.items.length > 0 || !after) {
          known.current = [...known.current, ...page.items].slice(-500);
          setState((last) => ({ events: known.current, complete: last.complete && page.complete, problem: null }));
        }
      } catch (cause) {
        if (!stop.signal.aborted && cause instanceof Problem) setState((last) => ({ ...last, problem: cause }));
      }
      if (!stop.signal.aborted) timer = window.setTimeout(() => void read(), document.hidden ? 5000 : 1000);
    };
    void read();
    return () => { stop.abort(); clearTimeout(timer); };
  }, [id]);
  return { ...state, newest: state.events.at(-1)?.seq ?? 0 };
}

/** What happened in a room, newest first. */
export function EventTable({ room, read }: { room: Room; read: Events }) {
  const [only, setOnly] = useState("");
  const nameOf = playersOf(room, read.events);
  const shown = read.events.filter((e) => !only || moves.includes(e.type)).reverse();
  return (
    <>
      <ProblemNote problem={read.problem} />
      {read.complete ? null : <p class="muted">Older events are no longer kept.</p>}
      {read.events.some((e) => moves.includes(e.type)) ? (
        <p><label class="small">Show <select value={only} onChange={(event) => setOnly(event.currentTarget.value)}>
          <option value="">everything</option>
          <option value="moves">the moves: turns and shared state</option>
        </select></label></p>
      ) : null}
      <Table label="Events, newest first" items={shown} id={(e) => e.seq}
        empty="No event is kept: they go ten minutes after the end of a room." columns={[
          { head: "No.", num: true, cell: (e) => e.seq },
          { head: "At", cell: (e) => <Time at={e.at} clock /> },
          { head: "What happened", cell: (e) => sentenceOf(e, room, nameOf) },
          {
            head: "Data", cell: (e) => (
              <details><summary>JSON</summary><code class="data">{e.type} {JSON.stringify(e.data)}</code></details>
            ),
          },
        ]} />
    </>
  );
}

/** The events by which players move. */
const moves = ["room.turn", "room.state"];
