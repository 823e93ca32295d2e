import { useState } from "preact/hooks";
import { withQuery } from "./api";
import { EventTable, useEvents } from "./events";
import { GameLink, PlayerLink, RoomLink } from "./names";
import { roomAmount } from "./rooms";
import type { Room } from "./types";
import {
  type Act, ActButton, Badge, type Column, More, ProblemNote, Refresh, Section, Table, Time, usePages,
} from "./ui";

const nameOf = (room: Room, user: number) => room.participants.find((p) => p.id === user)?.username ?? "player";

const path = (room: Room) => `/api/v1/admin/rooms/${room.roomId}/resolve`;

/** Returns the place that the field of a player says. It throws for one that is no place. */
function placeOf(text: string | undefined, name: string): number {
  if (!/^[1-9][0-9]{0,2}$/.test(text ?? "")) throw new Error(`The place of ${name} must be 1 or more`);
  return Number(text);
}

/** The act that ends a disputed room with a result. */
function decide(room: Room, then: () => void): Act {
  return {
    title: "Decide the result", button: "Pay out by these places", danger: true,
    says: <>Room <code>{room.code}</code> ends with this result, and the pot is paid out. This cannot be undone.</>,
    fields: room.participants.map((p) => ({
      name: String(p.id), label: `Place of ${p.username} #${p.id}`, type: "number" as const, required: true,
      hint: "From 1; the same place is a tie",
    })),
    method: "POST", path: path(room),
    body: (values) => ({
      results: room.participants.map((p) => ({ userId: p.id, place: placeOf(values[p.id], p.username) })),
    }),
    done: "The room is finished.", then,
  };
}

/** The act that ends a disputed room without a result. */
function refund(room: Room, then: () => void): Act {
  return {
    title: "Return every stake", button: "Return every stake", danger: true,
    says: <>Room <code>{room.code}</code> ends without a result and without rake, and every stake is returned. This cannot be undone.</>,
    method: "POST", path: path(room), body: () => ({ refund: true }), done: "Every stake is returned.", then,
  };
}

/** The buttons that end a disputed room. */
export const DisputeActs = ({ room, then }: { room: Room; then: () => void }) => (
  <>
    <ActButton label="Decide…" act={decide(room, then)} primary />
    <ActButton label="Refund…" act={refund(room, then)} />
  </>
);

/** What the players of a room with consensus reported: a row for each player, a column for each report. */
export function Reports({ room }: { room: Room }) {
  const reports = room.reports ?? [];
  const silent = room.participants.filter((p) => !room.reportedBy?.includes(p.id));
  type Report = (typeof reports)[number];
  const place = (report: Report, user: number) => {
    const said = report.results.find((r) => r.userId === user);
    if (!said) return "–";
    return said.score === undefined ? `place ${said.place}` : `place ${said.place} (score ${said.score})`;
  };
  const columns: Column<Room["participants"][number]>[] = [
    { head: "Player", cell: (p) => <PlayerLink id={p.id} name={p.username} /> },
    ...reports.map((report) => ({
      head: `By ${nameOf(room, report.userId)} #${report.userId}`,
      cell: (p: Room["participants"][number]) => place(report, p.id),
    })),
  ];
  const lost = reports.filter((r) => r.disputesLost !== undefined); // of a disputed room
  return (
    <>
      <Table label={`Places in room ${room.code ?? room.roomId}, by report`} columns={columns} items={room.participants} id={(p) => p.id}
        empty="Nobody is left." />
      {silent.length > 0 ? <p class="muted">No report of {silent.map((p) => `${p.username} #${p.id}`).join(", ")}.</p> : null}
      {lost.length > 0 ? (
        <p class="muted">
          Disputes that were decided against a report before: {lost.map((r) => `${nameOf(room, r.userId)} #${r.userId}: ${r.disputesLost}`).join(", ")}.
        </p>
      ) : null}
    </>
  );
}

/** The moves and other events of a disputed room, which are read when it is opened. */
function Happened({ room }: { room: Room }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="happened" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>What happened in the room</summary>
      {isOpen ? <HappenedEvents room={room} /> : null}
    </details>
  );
}

const HappenedEvents = ({ room }: { room: Room }) => <EventTable room={room} read={useEvents(room.roomId)} />;

export function DisputesScreen() {
  const rooms = usePages<Room>(withQuery("/api/v1/admin/rooms", { status: "DISPUTED", limit: 25 }));
  return (
    <>
      <div class="head">
        <h1>Disputes</h1>
        <div class="actions"><Refresh reload={rooms.reload} /></div>
      </div>
      <p class="muted">The players of these rooms reported different results. The pot is frozen until you decide, or until the stakes are returned.</p>
      <ProblemNote problem={rooms.problem} retry={rooms.reload} />
      {!rooms.value ? <p class="muted" role="status">Reading…</p> : null}
      {rooms.value?.length === 0 ? <p class="empty">No room is disputed.</p> : null}
      {rooms.value?.map((room) => (
        <Section key={room.roomId} title={`Room ${room.code ?? ""}`} actions={<DisputeActs room={room} then={rooms.reload} />}>
          <p>
            <RoomLink id={room.roomId} code={room.code} /> of <GameLink id={room.gameId} />,{" "}
            {roomAmount(room, room.totalWagerAmount)} at stake. <Badge text={room.status} /> since <Time at={room.disputedAt} />.
            Without a decision every stake will be returned at <Time at={room.refundAt} />.
          </p>
          <Reports room={room} />
          <Happened room={room} />
        </Section>
      ))}
      <More more={rooms.more} />
    </>
  );
}
