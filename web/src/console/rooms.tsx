import { useEffect, useRef, useState } from "preact/hooks";
import { call, Problem, withQuery } from "./api";
import { DisputeActs, Reports } from "./disputes";
import { formatBytes, formatClock } from "./format";
import type { Game, Page, Presence, Room, RoomEvent, Shared, Token } from "./types";
import {
  type Act, ActButton, Amount, Badge, type Column, Facts, More, PlayerLink, ProblemNote, RoomLink, Section, Table, Time,
  usePages, useRead,
} from "./ui";

const statuses = ["CREATED", "STARTED", "FINISHED", "CANCELLED", "DISPUTED"];
export const hasEnded = (room: Room): boolean => room.status === "FINISHED" || room.status === "CANCELLED";

/** Shows an amount of a token, "free" without one. */
export function tokenAmount(token: Token | null, units: string | undefined) {
  if (!token) return <span class="muted">free</span>;
  return <Amount units={units} decimals={Number(token.metadata.decimals)} code={token.tokenId} />;
}

export const roomAmount = (room: Room, units: string | undefined) => tokenAmount(room.entryToken, units);

/** The act that cancels a room. */
function cancelRoom(room: Room, then: () => void): Act {
  return {
    title: "Cancel the room", button: "Cancel and return every stake", danger: true,
    says: <>Room <code>{room.roomId}</code> ends at once, and its players get their stakes back. This cannot be undone.</>,
    method: "POST", path: "/api/v1/game-session/cancel", body: () => ({ roomId: room.roomId }),
    done: "The room is cancelled.", then,
  };
}

/** Chooses a game, "" for all of them; with `first` the first game is chosen at the start. */
export function GameSelect({ value, first, onChange }: { value: string; first?: boolean; onChange: (id: string) => void }) {
  const games = useRead<Page<Game>>("/api/v1/admin/games?limit=100").value?.items;
  useEffect(() => { if (first && games?.[0]) onChange(String(games[0].id)); }, [games]);
  return (
    <p class="field">
      <label for="game">Game</label>
      <select id="game" value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">All games</option>
        {games?.map((g) => <option key={g.id} value={g.id}>{g.name} #{g.id}</option>)}
      </select>
    </p>
  );
}

/** Chooses a status, "" for any. */
export function StatusSelect({ statuses, value, onChange }: {
  statuses: string[]; value: string; onChange: (status: string) => void;
}) {
  return (
    <p class="field">
      <label for="status">Status</label>
      <select id="status" value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">Any</option>
        {statuses.map((s) => <option key={s} value={s}>{s}</option>)}
      </select>
    </p>
  );
}

export function RoomsScreen() {
  const [game, setGame] = useState("");
  const [status, setStatus] = useState("");
  const [live, setLive] = useState(true);
  const rooms = usePages<Room>(withQuery("/api/v1/admin/rooms", { gameId: game, status, limit: 25 }));
  useEffect(() => {
    if (!live) return;
    const timer = setInterval(() => { if (!document.hidden) rooms.reload(); }, 2000);
    return () => clearInterval(timer);
  }, [live, rooms.reload]);
  const columns: Column<Room>[] = [
    { head: "Room", cell: (r) => <RoomLink id={r.roomId} /> },
    { head: "Status", cell: (r) => <Badge text={r.status} /> },
    { head: "Players", num: true, cell: (r) => `${r.participants.length} of ${r.maxPlayers}` },
    { head: "Host", cell: (r) => <PlayerLink id={r.host.id} name={r.host.username} /> },
    { head: "Entry", num: true, cell: (r) => roomAmount(r, r.roomEntryAmount) },
    { head: "Stakes", num: true, cell: (r) => roomAmount(r, r.totalWagerAmount) },
    { head: "Game", num: true, cell: (r) => <a href={`#/games/${r.gameId}`}>{r.gameId}</a> },
    { head: "Created", cell: (r) => <Time at={r.createdAt} /> },
  ];
  return (
    <>
      <div class="head"><h1>Rooms</h1></div>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <GameSelect value={game} onChange={setGame} />
        <StatusSelect statuses={statuses} value={status} onChange={setStatus} />
        <p class="field check">
          <label><input type="checkbox" checked={live} onChange={(event) => setLive(event.currentTarget.checked)} /> Live</label>
        </p>
      </form>
      <ProblemNote problem={rooms.problem} retry={rooms.reload} />
      <Table label="Rooms, newest first" columns={columns} items={rooms.value} id={(r) => r.roomId}
        empty="No rooms match. A room is kept for a day after its end." />
      <More more={rooms.more ? () => { setLive(false); rooms.more?.(); } : null} />
    </>
  );
}

/** Reads the events of a room, and asks for new ones each second while it is shown. */
function useEvents(id: string): { events: RoomEvent[]; complete: boolean; problem: Problem | null; newest: number } {
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

function Connected({ presence }: { presence?: Presence }) {
  if (presence?.connected) return <Badge text="yes" tone="good" />;
  return presence?.graceUntil ? <>no, waited for until <Time at={presence.graceUntil} /></> : <>no</>;
}

/** Shows how large the shared state is, and its values when it is opened. */
function SharedState({ shared }: { shared: Shared }) {
  const names = Object.keys(shared.value).length;
  const size = formatBytes(new TextEncoder().encode(JSON.stringify(shared.value)).length);
  return (
    <details>
      <summary>Version {shared.version}, {names} {names === 1 ? "name" : "names"}, {size}</summary>
      <pre class="tall" tabIndex={0} aria-label="Shared state as JSON"><code>{JSON.stringify(shared.value, null, 2)}</code></pre>
    </details>
  );
}

export function RoomScreen({ id }: { id: string }) {
  const read = useRead<Room>(`/api/v1/game-session/get?roomId=${encodeURIComponent(id)}`);
  const events = useEvents(id);
  useEffect(() => { if (events.newest > 0) read.reload(); }, [events.newest]);
  const last = useRef<Room | null>(null);
  if (read.value) last.current = read.value;
  const room = last.current;
  if (!room) return <><h1>Room</h1><ProblemNote problem={read.problem} retry={read.reload} /></>;
  const nameOf = (user: number) => room.participants.find((p) => p.id === user)?.username;
  const paid = Object.fromEntries([...(room.payouts ?? []), ...(room.refunds ?? [])].map((p) => [p.userId, p.amount]));
  return (
    <>
      <div class="head">
        <h1>Room <code>{room.code}</code> <Badge text={room.status} /></h1>
        <div class="actions">
          {room.status === "DISPUTED" ? <DisputeActs room={room} then={read.reload} /> : null}
          {hasEnded(room) ? null : <ActButton label="Cancel…" act={cancelRoom(room, read.reload)} />}
        </div>
      </div>
      <ProblemNote problem={read.problem} retry={read.reload} />
      <Facts rows={[
        ["Id", <code class="wrap">{room.roomId}</code>],
        ["Game", <a href={`#/games/${room.gameId}`}>{room.gameId}</a>],
        ["Host", <PlayerLink id={room.host.id} name={room.host.username} />],
        ["Players", `${room.participants.length} of ${room.minPlayers} to ${room.maxPlayers}`],
        ["Entry", roomAmount(room, room.roomEntryAmount)],
        ["Stakes in all", roomAmount(room, room.totalWagerAmount)],
        ["Rake", room.status === "FINISHED" ? roomAmount(room, room.rakeAmount) : "–"],
        ["Result by", room.settlement],
        ...(room.reportedBy ? [
          ["Reports until", <Time at={room.reportUntil} />],
          ["Disputed", <Time at={room.disputedAt} />],
          ["Stakes go back", <Time at={room.refundAt} />],
        ] as [string, preact.ComponentChildren][] : []),
        ["Visibility", room.visibility + (room.isFriendsOnly ? ", friends only" : "")],
        ["Created", <Time at={room.createdAt} />],
        ["Started", <Time at={room.startedAt} />],
        ["Ended", <>{<Time at={room.finishedAt} />}{room.reason ? ` (${room.reason})` : ""}</>],
        ["Turn", room.turn
          ? <><PlayerLink id={room.turn.userId} name={nameOf(room.turn.userId)} /> until <Time at={room.turn.deadline} /></> : "–"],
        ["Metadata", <code class="wrap">{JSON.stringify(room.metadata)}</code>],
      ]} />
      <Section title="Seats">
        <Table label="Seats, in seating order" items={room.seats} id={(s) => s.userId} empty="Nobody is seated." columns={[
          { head: "Player", cell: (s) => <PlayerLink id={s.userId} name={nameOf(s.userId)} /> },
          { head: "Seat", cell: (s) => <Badge text={s.state} tone={s.state === "active" ? "good" : "quiet"} /> },
          { head: "Ready", cell: (s) => (s.ready ? "yes" : "no") },
          { head: "Connected", cell: (s) => <Connected presence={room.presence?.find((p) => p.userId === s.userId)} /> },
          { head: "Stake", num: true, cell: (s) => (s.state === "reserved" ? "–" : roomAmount(room, room.roomEntryAmount)) },
          { head: "Paid back", num: true, cell: (s) => (paid[s.userId] ? roomAmount(room, paid[s.userId]) : "–") },
          { head: "Joined", cell: (s) => <Time at={s.joinedAt} /> },
        ]} />
      </Section>
      {room.shared ? <Section title="Shared state"><SharedState shared={room.shared} /></Section> : null}
      {room.reports ? <Section title="Reports"><Reports room={room} /></Section> : null}
      <Section title="Events" actions={<span class="muted">{hasEnded(room) ? "" : "live"}</span>}>
        <ProblemNote problem={events.problem} />
        {events.complete ? null : <p class="muted">Older events are no longer kept.</p>}
        <Table label="Events, newest first" items={[...events.events].reverse()} id={(e) => e.seq}
          empty="No event is kept: they go ten minutes after the end of a room." columns={[
            { head: "No.", num: true, cell: (e) => e.seq },
            { head: "At", cell: (e) => <time dateTime={e.at} title={e.at}>{formatClock(e.at)}</time> },
            { head: "Event", cell: (e) => <code>{e.type}</code> },
            { head: "Data", cell: (e) => <code class="data">{JSON.stringify(e.data)}</code> },
          ]} />
      </Section>
    </>
  );
}
