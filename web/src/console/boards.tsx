import { useState } from "preact/hooks";
import { withQuery } from "./api";
import { zone } from "./format";
import { GameLink, PlayerLink, RoomLink } from "./names";
import { GameSelect } from "./rooms";
import { partsOf } from "./tournaments";
import type { Board, BoardEntry, Season, Token } from "./types";
import {
  type Act, ActButton, Badge, type Column, Facts, More, ProblemNote, Refresh, Section, Table, Time, usePages, useRead, useTokens,
} from "./ui";

const tones: Record<string, string> = { OPEN: "good", CLOSING: "warn", SEALED: "quiet", UPCOMING: "new", HELD: "warn", PAID: "good" };

const SeasonBadge = ({ status }: { status: string }) => <Badge text={status} tone={tones[status]} />;

const reason = [{ name: "reason", label: "Reason", required: true, hint: "For the trail" }];

const listPath = (game: number | string) => `/api/v1/admin/games/${encodeURIComponent(game)}/leaderboards`;

const optionsOf = (texts: Record<string, string>) => Object.entries(texts).map(([value, text]) => ({ value, text }));

/** The act that makes a leaderboard. */
function create(game: string, tokens: Token[], then: () => void): Act {
  return {
    title: "New leaderboard", button: "Make it",
    says: "Order, what a further score does and the decimals never change. The rest can be changed by the API, for the next season.",
    fields: [
      { name: "name", label: "Name", required: true },
      { name: "board", label: "Key", required: true, hint: "Programs use it: small letters, digits, - and _, such as weekly" },
      { name: "order", label: "First is", type: "select", options: optionsOf({ desc: "the highest score", asc: "the lowest score" }) },
      {
        name: "operator", label: "A further score of a player", type: "select",
        options: optionsOf({ best: "counts if it is better", last: "replaces the one before", sum: "is added", min: "counts if it is lower", max: "counts if it is higher" }),
      },
      { name: "decimals", label: "Decimals of scores", type: "number", value: "0", required: true, hint: "0 to 6" },
      {
        name: "writers", label: "Scores come from", type: "select",
        options: optionsOf({ server: "the game's server", rooms: "the results of rooms", players: "players, who may cheat", "server,players": "the server and players" }),
      },
      {
        name: "cron", label: "A new season begins", type: "select",
        options: optionsOf({ "": "when staff ends the one before", "0 0 * * *": "every day", "0 0 * * 1": "every Monday", "0 0 1 * *": "every month" }),
      },
      { name: "timeZone", label: "Zone of the midnight at which it begins", value: zone, required: true },
      { name: "prize", label: "Prizes in", type: "select", options: [{ value: "", text: "none: without prizes" }, ...tokens.map((t) => ({ value: t.tokenId, text: t.tokenId }))] },
      { name: "pool", label: "Pool of a season", type: "number" },
      { name: "from", label: "The pool comes from", type: "select", options: optionsOf({ house: "the house", mint: "new units, made for it" }) },
      { name: "parts", label: "Parts of the pool by place", value: "100", hint: "Percent, with commas: 70, 30" },
      { name: "review", label: "Hours until it is paid", type: "number", value: "24", hint: "After the end of a season, to look at its entries" },
    ],
    method: "POST", path: listPath(game),
    body: (v) => ({
      board: v.board, name: v.name, order: v.order, operator: v.operator, decimals: Number(v.decimals), writers: v.writers!.split(","),
      ...(v.cron ? { schedule: { cron: v.cron, timeZone: v.timeZone } } : {}),
      ...(v.prize ? {
        prizes: {
          tokenId: v.prize, pool: v.pool, from: v.from, reviewSeconds: Math.round(Number(v.review) * 3600),
          table: partsOf(v.parts!).map((shareBps, i) => ({ fromPlace: i + 1, toPlace: i + 1, shareBps })),
        },
      } : {}),
    }),
    done: "The leaderboard is made.", then,
  };
}

export function BoardsScreen() {
  const [game, setGame] = useState("");
  const { list: tokens } = useTokens();
  const boards = usePages<Board>(game ? `${listPath(game)}?limit=50` : null);
  return (
    <>
      <div class="head">
        <h1>Leaderboards</h1>
        <div class="actions">
          {game ? <ActButton label="New leaderboard…" act={create(game, tokens, boards.reload)} primary /> : null}
          <Refresh reload={boards.reload} />
        </div>
      </div>
      <form class="filters" onSubmit={(event) => event.preventDefault()}><GameSelect value={game} first onChange={setGame} /></form>
      <ProblemNote problem={boards.problem} retry={boards.reload} />
      <Table label="Leaderboards" items={boards.value} id={(b) => b.board} empty="The game has no leaderboard." columns={[
        { head: "Leaderboard", cell: (b) => <a href={`#/leaderboards/${b.gameId}.${b.board}`}>{b.name} <code>{b.board}</code></a> },
        { head: "Season", num: true, cell: (b) => b.season.season },
        { head: "Status", cell: (b) => <SeasonBadge status={b.season.status} /> },
        { head: "Entries", num: true, cell: (b) => b.season.entries },
        { head: "Closes", cell: (b) => <Time at={b.season.closesAt} /> },
        { head: "Writers", cell: (b) => b.writers.join(", ") },
      ]} />
      <More more={boards.more} />
    </>
  );
}

/** The acts on an entry of a season. */
function entryActs(path: string, season: number, e: BoardEntry, then: () => void) {
  const act = (verb: string, more: Omit<Act, "method" | "path" | "fields" | "body" | "then">): Act => ({
    ...more, method: "POST", path: `${path}/entries/${e.user.id}/${verb}?season=${season}`, fields: reason,
    body: ({ reason }) => ({ reason }), then,
  });
  const who = <>{e.user.username || "player"} #{e.user.id}, rank {e.rank}</>;
  return (
    <>
      {e.hidden
        ? <ActButton label="Show…" act={act("unhide", {
            title: "Show the entry again", says: <>{who}, gets the place back that the score has.</>, button: "Show it",
            done: "The entry is shown again.",
          })} />
        : <ActButton label="Hide…" act={act("hide", {
            title: "Hide the entry", says: <>{who}. The others move up at once; the player still sees an own rank.</>, button: "Hide it",
            done: "The entry is hidden.",
          })} />}
      <ActButton label="Remove…" act={act("remove", {
        title: "Remove the entry", danger: true, says: <>{who}. The score is gone, and cannot be brought back.</>, button: "Remove it",
        done: "The entry is removed.",
      })} />
    </>
  );
}

/** The acts on a season: its end, and what becomes of its prizes. */
function seasonActs(path: string, board: Board, s: Season, then: () => void) {
  const act = (verb: string, more: Omit<Act, "method" | "path" | "fields" | "body" | "then">): Act => ({
    ...more, method: "POST", path: `${path}/seasons/${s.season}/${verb}`, fields: reason, body: ({ reason }) => ({ reason }), then,
  });
  return (
    <>
      {s.status === "OPEN" ? <ActButton label="End…" act={act("end", {
        title: `End season ${s.season}`, danger: true, says: "The next season begins at once. This cannot be undone.",
        button: "End it now", done: "The season is over.",
      })} /> : null}
      {board.prizes && s.status === "HELD" ? <ActButton label="Approve…" act={act("approve", {
        title: `Approve the prizes of season ${s.season}`, says: "The prizes are paid by the order as it is now.",
        button: "Pay them", done: "The prizes are approved.",
      })} /> : null}
      {board.prizes && (s.status === "HELD" || s.status === "SEALED") ? <ActButton label="Void…" act={act("void", {
        title: `Void the prizes of season ${s.season}`, danger: true, says: "Nobody is paid; the pool returns to where it came from.",
        button: "Return the pool", done: "The prizes are void.",
      })} /> : null}
    </>
  );
}

const columnsOf = (board: Board, acts: (e: BoardEntry) => preact.JSX.Element): Column<BoardEntry>[] => [
  { head: "Rank", num: true, cell: (e) => e.rank },
  { head: "Player", cell: (e) => <><PlayerLink id={e.user.id} name={e.user.username} />{e.hidden ? <> <Badge text="hidden" tone="warn" /></> : null}</> },
  { head: "Score", num: true, cell: (e) => String(e.score) },
  ...(board.subscore ? [{ head: "Subscore", num: true, cell: (e: BoardEntry) => String(e.subscore ?? "–") }] : []),
  { head: "Reached", cell: (e) => <Time at={e.reachedAt} /> },
  { head: "Submissions", num: true, cell: (e) => e.submissions },
  { head: "Evidence", cell: (e) => (e.evidence?.roomId ? <RoomLink id={e.evidence.roomId} /> : <span class="wrap">{e.evidence?.url ?? e.evidence?.digest ?? "–"}</span>) },
  { head: "Act", cell: acts },
];

// prizesOf says whether the pool of a season is set aside, and who alone decides about it.
function prizesOf(season: Season) {
  if (season.prizesFunded === null) return "none";
  return `${season.prizesFunded ? "set aside" : "not set aside"}, promised by the ${season.prizesPromisedBy ?? "operator"}`;
}

export function BoardScreen({ id }: { id: string }) {
  const [game, key] = [id.slice(0, id.indexOf(".")), id.slice(id.indexOf(".") + 1)];
  const path = `${listPath(game)}/${encodeURIComponent(key)}`;
  const own = `/api/v1/leaderboards/${encodeURIComponent(key)}`;
  const read = useRead<Board>(path);
  const seasons = usePages<Season>(withQuery(`${own}/seasons`, { gameId: game, limit: 25 }));
  const [chosen, setChosen] = useState<number | null>(null);
  const season = chosen ?? read.value?.season.season ?? 0;
  const entries = usePages<BoardEntry>(season ? withQuery(`${own}/entries`, { gameId: game, season, limit: 25 }) : null);
  const [player, setPlayer] = useState("");
  const one = useRead<BoardEntry>(season && /^\d+$/.test(player) ? withQuery(`${own}/entries/${player}`, { gameId: game, season }) : null);
  if (!read.value) return <><h1>Leaderboard {key}</h1><ProblemNote problem={read.problem} retry={read.reload} /></>;
  const board = read.value;
  const reload = () => { read.reload(); seasons.reload(); entries.reload(); one.reload(); };
  const columns = columnsOf(board, (e) => entryActs(path, season, e, reload));
  return (
    <>
      <div class="head">
        <h1>{board.name} <code class="muted">{board.board}</code></h1>
        <div class="actions">{seasonActs(path, board, board.season, reload)}<Refresh reload={reload} /></div>
      </div>
      <Facts rows={[
        ["Game", <GameLink id={board.gameId} />],
        ["Order", `${board.order === "asc" ? "lowest" : "highest"} first, ${board.operator}, ${board.decimals} decimals`],
        ["Writers", board.writers.join(", ")],
        ["Schedule", board.schedule ? (board.schedule.cron ? `${board.schedule.cron}, ${board.schedule.timeZone}` : `every ${board.schedule.everySeconds} s`) : "until staff ends it"],
        ["Season", <>{board.season.season} <SeasonBadge status={board.season.status} />, {board.season.entries} entries</>],
        ["Closes", <Time at={board.season.closesAt} />],
        ["Prizes", prizesOf(board.season)],
      ]} />
      <Section title={`Entries of season ${season}`}>
        <form class="filters" onSubmit={(event) => {
          event.preventDefault();
          setPlayer(new FormData(event.currentTarget).get("player") as string);
        }}>
          <p class="field"><label for="player">Player's number</label>
            <input id="player" name="player" type="text" inputMode="numeric" autoComplete="off" /></p>
          <button type="submit">Find</button>
        </form>
        {player ? <ProblemNote problem={one.problem} retry={one.reload} /> : null}
        {one.value ? <Table label="Entry of the player" columns={columns} items={[one.value]} id={(e) => e.user.id} empty="" /> : null}
        <ProblemNote problem={entries.problem} retry={entries.reload} />
        <Table label="Entries" columns={columns} items={entries.value} id={(e) => e.user.id} empty="Nobody has an entry." />
        <More more={entries.more} />
      </Section>
      <Section title="Seasons">
        <ProblemNote problem={seasons.problem} retry={seasons.reload} />
        <Table label="Seasons" items={seasons.value} id={(s) => s.season} empty="No season has begun." columns={[
          { head: "Season", num: true, cell: (s) => s.season },
          { head: "Status", cell: (s) => <SeasonBadge status={s.status} /> },
          { head: "Opened", cell: (s) => <Time at={s.opensAt} /> },
          { head: "Closes", cell: (s) => <Time at={s.closesAt} /> },
          { head: "Entries", num: true, cell: (s) => s.entries },
          { head: "Prizes", cell: (s) => prizesOf(s) },
          {
            head: "Act", cell: (s) => <>
              <button type="button" aria-pressed={s.season === season} onClick={() => setChosen(s.season)}>Entries</button>
              {seasonActs(path, board, s, reload)}
            </>,
          },
        ]} />
        <More more={seasons.more} />
      </Section>
    </>
  );
}
