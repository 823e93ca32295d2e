import { useEffect, useRef, useState } from "preact/hooks";
import { call, Problem, withQuery } from "./api";
import { DisputeActs, Reports } from "./disputes";
import { cancelReasons, EventTable, playersOf, useEvents } from "./events";
import { formatBytes } from "./format";
import { GameLink, PlayerLink, RoomLink } from "./names";
import { Timeline } from "./timeline";
import type { Game, Page, Presence, Room, Shared, Token } from "./types";
import {
  type Act, ActButton, Amount, Badge, type Column, Facts, More, ProblemNote, Refresh, Section, Table, Time, usePages, useRead,
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
    says: <>Room <code>{room.code}</code> <code class="muted">{room.roomId}</code> ends at once, and its players get their stakes back. This cannot be undone.</>,
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

/** Opens a room by its code, or by its id. */
function FindRoom({ game }: { game: string }) {
  const [text, setText] = useState("");
  const [missing, setMissing] = useState("");
  const find = async () => {
    const wanted = text.trim();
    setMissing("");
    if (wanted.length > 16) { location.hash = `#/rooms/${wanted}`; return; }
    // A code is unique within a game.
    const games = game ? [game] : (await call<Page<Game>>("GET", "/api/v1/admin/games?limit=100")).items.map((g) => g.id);
    for (const gameId of games) {
      try {
        const room = await call<Room>("GET", withQuery("/api/v1/game-session/get", { code: wanted.toUpperCase(), gameId }));
        location.hash = `#/rooms/${room.roomId}`;
        return;
      } catch (cause) {
        if (!(cause instanceof Problem && cause.status === 404)) throw cause;
      }
    }
    setMissing(`No room has the code ${wanted}. A room is kept for a day after its end.`);
  };
  return (
    <form class="filters" role="search" onSubmit={(event) => {
      event.preventDefault();
      find().catch((cause: unknown) => setMissing(cause instanceof Error ? cause.message : String(cause)));
    }}>
      <p class="field"><label for="code">Code or id of a room</label>
        <input id="code" required maxLength={36} value={text} autoComplete="off" spellcheck={false}
          onInput={(event) => setText(event.currentTarget.value)} /></p>
      <button type="submit" class="primary">Open</button>
      <span role="status">{missing}</span>
    </form>
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
    { head: "Room", cell: (r) => <RoomLink id={r.roomId} code={r.code} /> },
    { head: "Status", cell: (r) => <Badge text={r.status} /> },
    { head: "Players", num: true, cell: (r) => playersText(r) },
    { head: "Host", cell: (r) => <PlayerLink id={r.host.id} name={r.host.username} /> },
    { head: "Entry", num: true, cell: (r) => roomAmount(r, r.roomEntryAmount) },
    { head: "Stakes", num: true, cell: (r) => r.entryToken ? roomAmount(r, r.totalWagerAmount) : "–" },
    { head: "Game", cell: (r) => <GameLink id={r.gameId} /> },
    { head: "Created", cell: (r) => <Time at={r.createdAt} /> },
  ];
  return (
    <>
      <div class="head"><h1>Rooms</h1><div class="actions"><Refresh reload={rooms.reload} /></div></div>
      <FindRoom game={game} />
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

function playersText(room: Room): string {
  const here = room.participants.length;
  if (hasEnded(room)) return String(here);
  return `${here} of ${room.maxPlayers}`;
}

/** The part of the pot that the house takes, and what that was. */
function Rake({ room }: { room: Room }) {
  if (!room.rakeBps) return <span class="muted">none</span>;
  const part = `${room.rakeBps / 100} %`;
  return room.status === "FINISHED" ? <>{roomAmount(room, room.rakeAmount)} ({part})</> : <>{part}</>;
}

type NameOf = (user: number) => string | undefined;

/** Who sits in a room that has not ended. */
function Seats({ room, nameOf }: { room: Room; nameOf: NameOf }) {
  return (
    <Section title="Seats">
      <Table label="Seats, in seating order" items={room.seats} id={(s) => s.userId} empty="Nobody is seated." columns={[
        { head: "Player", cell: (s) => <PlayerLink id={s.userId} name={nameOf(s.userId)} /> },
        { head: "Seat", cell: (s) => <Badge text={s.state} tone={s.state === "active" ? "good" : "quiet"} /> },
        { head: "Ready", cell: (s) => (s.ready ? "yes" : "no") },
        { head: "Connected", cell: (s) => <Connected presence={room.presence?.find((p) => p.userId === s.userId)} /> },
        { head: "Stake", num: true, cell: (s) => (s.state === "reserved" ? "–" : roomAmount(room, room.roomEntryAmount)) },
        { head: "Joined", cell: (s) => <Time at={s.joinedAt} /> },
      ]} />
    </Section>
  );
}

/** What a room ended with: the places and payouts, or the stakes that were returned. */
function Result({ room, nameOf }: { room: Room; nameOf: NameOf }) {
  const player = { head: "Player", cell: (r: { userId: number }) => <PlayerLink id={r.userId} name={nameOf(r.userId)} /> };
  if (room.status === "CANCELLED") {
    return (
      <Section title="Returned stakes">
        <Table label="Returned stakes" items={room.refunds ?? []} id={(r) => r.userId}
          empty={room.entryToken ? "No stake was left to return." : "The room was free: there was no stake."}
          columns={[player, { head: "Returned", num: true, cell: (r) => roomAmount(room, r.amount) }]} />
      </Section>
    );
  }
  const scores = new Map(room.results?.map((r) => [r.userId, r.score]));
  type Payout = NonNullable<Room["payouts"]>[number];
  const rows: Payout[] = room.payouts ?? room.results?.map((r) => ({ userId: r.userId, place: r.place, payout: 0, amount: "0" })) ?? [];
  return (
    <Section title="Result">
      <Table label="Result" items={rows} id={(p) => p.userId} empty="Nobody has a place." columns={[
        { head: "Place", num: true, cell: (p) => p.place ?? "forfeited" },
        player,
        { head: "Score", num: true, cell: (p) => scores.get(p.userId) ?? "–" },
        ...(room.entryToken ? [
          { head: "Stake", num: true, cell: () => roomAmount(room, room.roomEntryAmount) },
          { head: "Payout", num: true, cell: (p: Payout) => roomAmount(room, p.amount) },
        ] : []),
      ]} />
    </Section>
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
  const nameOf = playersOf(room, events.events);
  return (
    <>
      <div class="head">
        <h1>Room <code>{room.code}</code> <Badge text={room.status} /></h1>
        <div class="actions">
          {room.status === "DISPUTED" ? <DisputeActs room={room} then={read.reload} /> : null}
          {hasEnded(room) ? null : <ActButton label="Cancel…" act={cancelRoom(room, read.reload)} />}
          <Refresh reload={read.reload} />
        </div>
      </div>
      <ProblemNote problem={read.problem} retry={read.reload} />
      <Facts rows={[
        ["Id", <code class="wrap">{room.roomId}</code>],
        ["Game", <GameLink id={room.gameId} />],
        ["Host", <PlayerLink id={room.host.id} name={room.host.username} />],
        ["Players", playersText(room)],
        ...(hasEnded(room) || room.minPlayers === room.maxPlayers ? [] : [["Starts with", `${room.minPlayers} or more`]] as [string, string][]),
        ["Entry", roomAmount(room, room.roomEntryAmount)],
        ...(room.entryToken ? [
          ["Stakes in all", roomAmount(room, room.totalWagerAmount)],
          ["Rake", <Rake room={room} />],
        ] as [string, preact.ComponentChildren][] : []),
        ["Result by", room.settlement],
        ...(room.reportedBy ? [
          ["Reports until", <Time at={room.reportUntil} />],
          ["Disputed", <Time at={room.disputedAt} />],
          ...(room.refundAt ? [["Without a decision", <>Stakes will be returned at <Time at={room.refundAt} /></>]] : []),
        ] as [string, preact.ComponentChildren][] : []),
        ["Visibility", room.visibility + (room.isFriendsOnly ? ", friends only" : "")],
        ["Created", <Time at={room.createdAt} />],
        ["Started", <Time at={room.startedAt} />],
        ...(hasEnded(room) ? [["Ended", <>{<Time at={room.finishedAt} />}{room.reason ? ` (${cancelReasons[room.reason] ?? room.reason})` : ""}</>]] as [string, preact.ComponentChildren][] : []),
        ...(hasEnded(room) ? [] : [["Turn", room.turn
          ? <><PlayerLink id={room.turn.userId} name={nameOf(room.turn.userId)} /> until <Time at={room.turn.deadline} /></> : "–"],
        ] as [string, preact.ComponentChildren][]),
        ...(room.rematchRoomId ? [["Rematch", <RoomLink id={room.rematchRoomId} />]] as [string, preact.ComponentChildren][] : []),
        ...(Object.keys(room.metadata).length > 0
          ? [["Metadata", <code class="wrap">{JSON.stringify(room.metadata)}</code>]] as [string, preact.ComponentChildren][] : []),
      ]} />
      {room.reports ? <Section title="Reports"><Reports room={room} /></Section> : null}
      {hasEnded(room) ? <Result room={room} nameOf={nameOf} /> : <Seats room={room} nameOf={nameOf} />}
      {room.shared ? <Section title="Shared state"><SharedState shared={room.shared} /></Section> : null}
      <Section title="Timeline"><Timeline room={room} kept={events.events} /></Section>
      <Section title="Events" actions={<span class="muted">{hasEnded(room) ? "" : "live"}</span>}>
        <EventTable room={room} read={events} />
      </Section>
    </>
  );
}
