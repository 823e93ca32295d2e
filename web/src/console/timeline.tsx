// The picture of one room: who was there, when, what happened and where the money was.
import { useEffect, useRef, useState } from "preact/hooks";
import { playersOf, sentenceOf } from "./events";
import { formatClock, formatTick, formatUnits, zone } from "./format";
import type { Room, RoomEvent, User } from "./types";

interface Data { user?: User; creator?: User; userId?: number; totalWagerAmount?: string; payouts?: Paid[] | null; refunds?: Paid[] | null }
interface Paid { userId: number; amount: string }

const ends = ["room.finished", "room.cancelled"];

/**
 * Returns the events in order, and those that a room itself still tells when they are no longer kept: its
 * creation, its seats, its start and its end.
 */
function fillGaps(room: Room, events: RoomEvent[]): RoomEvent[] {
  const entry = BigInt(room.roomEntryAmount ?? "0");
  const told: [string, string | null, Data][] = [
    ["room.created", room.createdAt, { creator: room.creator, totalWagerAmount: String(entry) }],
    ...room.seats.filter((s) => s.state !== "reserved" && s.userId !== room.creator.id).map((s, i): [string, string, Data] => [
      "room.joined", s.joinedAt,
      { user: room.participants.find((p) => p.id === s.userId) ?? { id: s.userId, username: "", avatar: null }, totalWagerAmount: String(entry * BigInt(i + 2)) },
    ]),
    ["room.started", room.startedAt, {}],
    [`room.${room.status.toLowerCase()}`, room.finishedAt, { payouts: room.payouts, refunds: room.refunds, ...{ reason: room.reason } }],
  ];
  const isKept = (type: string, data: Data) =>
    events.some((e) => e.type === type && (e.data as Data).user?.id === data.user?.id);
  const missing = told.flatMap(([type, at, data]) => at && !isKept(type, data) ? [{ type, seq: 0, at, data: data as Record<string, unknown> }] : []);
  return [...missing, ...events].sort((a, b) => a.at < b.at ? -1 : a.at > b.at ? 1 : a.seq - b.seq);
}

/** Returns where each event is drawn, from 0 to 1. A long pause is drawn shorter than it was. */
function placesOf(events: RoomEvent[]): number[] {
  let sum = 0;
  const sums = events.map((e, i) => {
    if (i > 0) sum += 1 + Math.log2(1 + Math.max(0, Date.parse(e.at) - Date.parse(events[i - 1]!.at)) / 1000);
    return sum;
  });
  return sums.map((one) => (sum === 0 ? 0 : one / sum));
}

/** Returns the width of an element, as it changes. */
function useWidth() {
  const host = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const resized = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    resized.observe(host.current!);
    return () => resized.disconnect();
  }, []);
  return { host, width };
}

const lane = 34, label = 84, top = 10, potHeight = 46, mostPlayers = 12;

export function Timeline({ room, kept }: { room: Room; kept: RoomEvent[] }) {
  const { host, width } = useWidth();
  const events = fillGaps(room, kept);
  const places = placesOf(events);
  const right = width - 12;
  const x = (i: number) => label + places[i]! * (right - label);
  const nameOf = playersOf(room, events);
  const say = (i: number) => `${formatClock(events[i]!.at)}: ${sentenceOf(events[i]!, room, nameOf)}`;
  const data = events.map((e) => e.data as Data);
  const of = (d: Data) => d.user?.id ?? d.creator?.id ?? d.userId;
  const token = room.entryToken;
  const amount = (units: string) => `${formatUnits(units, Number(token!.metadata.decimals))} ${token!.tokenId}`;
  const last = events.findIndex((e) => ends.includes(e.type));
  const end = last >= 0 ? x(last) : right;

  const all = [...new Set(data.flatMap((d) => (d.user ?? d.creator)?.id ?? []))];
  const players = all.slice(0, mostPlayers);
  const y = (row: number) => top + row * lane + lane / 2;
  const potTop = y(players.length) + lane / 2 + 14;
  const axis = (token ? potTop + potHeight : y(players.length) + lane / 2) + 16;

  // The pot: what the events say it is, and nothing after the end.
  const pots = events.flatMap((e, i) => {
    const units = ends.includes(e.type) ? "0" : data[i]!.totalWagerAmount;
    return units === undefined ? [] : [{ at: x(i), units }];
  });
  const most = pots.reduce((max, p) => (BigInt(p.units) > max ? BigInt(p.units) : max), 1n);
  const potY = (units: string) => potTop + potHeight - Number((BigInt(units) * 1000n) / most) / 1000 * (potHeight - 14);
  const potPath = pots.map((p, i) => `${i === 0 ? `M${p.at} ${potY(p.units)}` : `H${p.at}V${potY(p.units)}`}`).join("") + (last >= 0 ? "" : `H${right}`);
  let written = -Infinity; // where the last label of the pot ends
  let ticked = -Infinity; // and that of the axis

  const peak = token ? `, a pot of ${amount(String(most))}` : "";
  const summary = `Timeline of the room: ${events.length} events, ${all.length} ${all.length === 1 ? "player" : "players"}${peak}. ` +
    `From ${say(0)}, to ${say(events.length - 1)}. The list of events has each.`;

  return (
    <div ref={host} class="timeline">
      {width > 0 ? (
        <svg role="img" aria-label={summary} width={width} height={axis + 8} viewBox={`0 0 ${width} ${axis + 8}`}>
          <text x="0" y={y(0) + 4}>room</text>
          {events.map((e, i) => {
            const next = ["room.started", "room.disputed", ...ends];
            if (e.type !== "room.created" && !next.includes(e.type) || ends.includes(e.type)) return null;
            const after = events.findIndex((other, at) => at > i && next.includes(other.type));
            return <rect key={e.type} class={e.type.slice(5)} x={x(i)} y={y(0) - 5} height="10" rx="3" width={Math.max(2, (after >= 0 ? x(after) : end) - x(i))}><title>{say(i)}</title></rect>;
          })}
          {players.map((id, row) => {
            const joined = data.findIndex((d) => (d.user ?? d.creator)?.id === id);
            const left = events.findIndex((e, i) => e.type === "room.left" && data[i]!.userId === id);
            const cuts = events.flatMap((e, i) => e.type === "room.disconnected" && data[i]!.userId === id ? [i] : []);
            const money = last < 0 ? undefined : [...data[last]!.payouts ?? [], ...data[last]!.refunds ?? []].find((p) => p.userId === id)?.amount;
            const to = left >= 0 ? x(left) : end;
            return (
              <g key={id}>
                <text x="0" y={y(row + 1) + 4}>{(nameOf(id) || `#${id}`).slice(0, 11)}</text>
                <line class="seat" x1={x(joined)} x2={Math.max(to, x(joined) + 2)} y1={y(row + 1)} y2={y(row + 1)} />
                {cuts.map((i) => {
                  const back = events.findIndex((e, at) => at > i && e.type === "room.connected" && data[at]!.userId === id);
                  return <line key={i} class="cut" x1={x(i)} x2={back >= 0 ? x(back) : to} y1={y(row + 1)} y2={y(row + 1)}><title>{say(i)}</title></line>;
                })}
                {token && x(joined) + 150 < right
                  ? <text x={x(joined)} y={y(row + 1) - 7}>−{amount(room.roomEntryAmount ?? "0")}</text> : null}
                {money && money !== "0" && token
                  ? <text class="money" text-anchor="end" x={right} y={y(row + 1) - 7}>+{amount(money)}</text> : null}
              </g>
            );
          })}
          {events.map((e, i) => {
            const id = of(data[i]!);
            const row = id === undefined ? 0 : players.indexOf(id) + 1;
            return <circle key={i} class={e.type.slice(5)} cx={x(i)} cy={y(row)} r={row === 0 && !ends.includes(e.type) ? 3 : 4.5}><title>{say(i)}</title></circle>;
          })}
          {token ? (
            <>
              <text x="0" y={potTop + potHeight - 2}>pot</text>
              <path class="pot" d={potPath} />
              {pots.map((p, i) => {
                const text = amount(p.units), wide = text.length * 7 + 8;
                const at = Math.min(p.at + 4, right - wide + 8);
                const next = pots[i + 1];
                if (at < written || p.units === "0" || (next && next.units !== "0" && next.at < at + wide)) return null;
                written = at + wide;
                return <text key={i} x={at} y={potY(p.units) - 4}>{text}</text>;
              })}
            </>
          ) : null}
          {events.map((e, i) => {
            const at = Math.min(x(i), right - 76);
            if (at < ticked) return null;
            ticked = at + 84;
            return <text key={i} class="tick" x={at} y={axis}>{formatTick(Date.parse(e.at))}</text>;
          })}
        </svg>
      ) : null}
      <p class="muted">Each dot is an event{all.length > mostPlayers ? `; the first ${mostPlayers} players are shown` : ""}. Long pauses are drawn shorter. Times are those of {zone}.</p>
    </div>
  );
}
