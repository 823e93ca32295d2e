// What things are called: one component for each thing that a screen names.
import { signal, type Signal } from "@preact/signals";
import { lookUp, Problem } from "./api";
import { shortID } from "./format";
import type { Asset, Game, Player, Room, Tournament } from "./types";

const names = new Map<string, Signal<string>>(); // by the path that has them

/** Returns the name that `pick` finds at a path of the API, "" until it is read. It is read once. */
function nameAt<T>(path: string, pick: (value: T) => string | undefined): string {
  let name = names.get(path);
  if (!name) {
    const read = signal("");
    names.set(path, name = read);
    lookUp<T>(path).then((value) => { read.value = pick(value) ?? ""; }, (cause: unknown) => {
      if (!(cause instanceof Problem && cause.status === 404)) names.delete(path); // the next screen tries again
    });
  }
  return name.value;
}

const gamePath = (id: number | string) => `/api/v1/admin/games/${id}`;

/** Changes what a game is called, after an edit. */
export function renameGame(id: number, name: string): void {
  const known = names.get(gamePath(id));
  if (known) known.value = name;
}

/** A game by its name. */
export const GameLink = ({ id }: { id: number | string }) =>
  <a href={`#/games/${id}`}>{nameAt<Game>(gamePath(id), (game) => game.name) || "game"} <span class="muted">#{id}</span></a>;

/** A player by name. Without one the name is looked up. */
export const PlayerLink = ({ id, name }: { id: number; name?: string }) => (
  <a href={`#/players/${id}`}>
    {name || nameAt<{ user: Player }>(`/api/v1/admin/users/${id}`, ({ user }) => user.username) || "player"}{" "}
    <span class="muted">#{id}</span>
  </a>
);

const roomPath = (id: string) => `/api/v1/game-session/get?roomId=${id}`;

/** A room by its code, with the id beside it. Without a code it is looked up; a room is gone a day after its end. */
export function RoomLink({ id, code }: { id: string; code?: string }) {
  const known = code || nameAt<Room>(roomPath(id), (room) => room.code);
  return (
    <a href={`#/rooms/${id}`}>
      {known ? <><code>{known}</code> </> : null}<code class="muted" title={id}>{shortID(id)}</code>
    </a>
  );
}

/** What a ref of the ledger, or a target of the trail, leads to. Ids that count within a game need that game. */
export function Ref({ text, game }: { text: string; game?: number | string }) {
  if (/^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(text)) return <RoomLink id={text} />;
  const [kind, first = "", second] = text.split(":");
  switch (kind) {
    case "room": return <RoomLink id={first} />;
    case "user": return <PlayerLink id={Number(first)} />;
    case "game": return <GameLink id={first} />;
    case "op": return <>the operator</>;
    case "asset":
      if (game) return <a href={`#/games/${game}`}>{nameAt<Asset>(`${gamePath(game)}/assets/${first}`, (asset) => asset.name) || "asset"} <span class="muted">#{first}</span></a>;
      break;
    case "tour":
      if (game) return <TournamentLink game={game} id={first} />;
      break;
    case "board":
      if (game) return <a href={`#/leaderboards/${game}.${first}`}>{first}, season {second}</a>;
      if (first.includes(".")) return <a href={`#/leaderboards/${first}`}>{text}</a>;
      break;
    case "tournament": {
      const [of, id] = first.split(".");
      if (of && id) return <TournamentLink game={of} id={id} />;
    }
  }
  return <span class="wrap">{text || "–"}</span>;
}

function TournamentLink({ game, id }: { game: number | string; id: string }) {
  const name = nameAt<Tournament>(`/api/v1/tournaments/${id}?gameId=${game}`, (tournament) => tournament.name);
  return <a href={`#/tournaments/${game}.${id}`}>{name || "tournament"} <span class="muted">#{id}</span></a>;
}
