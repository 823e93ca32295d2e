import { useEffect, useState } from "preact/hooks";
import { withQuery } from "./api";
import { GameLink, PlayerLink, RoomLink } from "./names";
import { GameSelect, StatusSelect, tokenAmount } from "./rooms";
import type { Entrant, Match, Standing, Token, Tournament } from "./types";
import {
  type Act, ActButton, Badge, Facts, More, ProblemNote, Refresh, Section, Table, Time, usePages, useRead, useTokens,
} from "./ui";

const statuses = ["ANNOUNCED", "REGISTRATION", "CHECK_IN", "RUNNING", "SETTLING", "FINISHED", "CANCELLING", "CANCELLED"];
const beforeStart = statuses.slice(0, 3);

const tones: Record<string, string> = {
  ANNOUNCED: "quiet", REGISTRATION: "new", CHECK_IN: "new", RUNNING: "good", SETTLING: "warn", CANCELLING: "warn",
  WAITING: "quiet", READY: "new", PLAYING: "good", DECIDED: "quiet", disqualified: "bad", playing: "good",
};
const StatusBadge = ({ status }: { status: string }) => <Badge text={status} tone={tones[status]} />;

const formats: Record<string, string> = {
  single_elimination: "Bracket: who loses is out", swiss: "Swiss: rounds against players with as many points",
  round_robin: "Everybody against everybody", score: "Best score of a leaderboard",
};
const reasons: Record<string, string> = {
  operator: "by the operator", server: "by the game's server", undersubscribed: "too few players at the start",
  expired: "not decided in time", unplayed: "nobody played",
};

const matchReasons: Record<string, string> = {
  played: "the game", walkover: "the other one did not come", double_forfeit: "nobody came", bye: "no opponent",
  disqualified: "the other one is disqualified", resolved: "staff",
};

const reasonField = [{ name: "reason", label: "Reason", required: true, hint: "For the trail" }];
const reasonBody = ({ reason }: Record<string, string>) => ({ reason });

const listPath = (game: number | string) => `/api/v1/admin/games/${encodeURIComponent(game)}/tournaments`;

const amountIn = (t: Tournament, units: string) => tokenAmount(t.entryToken, units);

const percent = (bps: number) => `${bps / 100} %`;

/** Returns the parts of the pot by place: "70, 30" is 7,000 and 3,000 basis points. */
export function partsOf(text: string): number[] {
  const parts = text.split(",").map((part) => Math.round(Number(part) * 100));
  if (parts.some((part) => !(part >= 0)) || parts.reduce((sum, part) => sum + part, 0) !== 10_000) {
    throw new Error("The parts of the pot must be percentages that sum to 100, such as 70, 30");
  }
  return parts;
}

const timeOf = (text: string | undefined) => (text ? new Date(text).toISOString() : undefined);

/** The act that opens a tournament. */
function create(game: string, tokens: Token[], then: () => void): Act {
  const own = tokens.filter((t) => !t.games?.length || t.games.some((g) => String(g.gameId) === game));
  return {
    title: "New tournament", button: "Open it",
    says: "It never changes once it is open; it can be cancelled, and every fee goes back.",
    fields: [
      { name: "name", label: "Name", required: true },
      { name: "format", label: "Format", type: "select", options: Object.entries(formats).map(([value, text]) => ({ value, text })) },
      { name: "max", label: "Most players", type: "number", value: "8", required: true },
      { name: "min", label: "Fewest players", type: "number", value: "2", required: true, hint: "With fewer at the start it is cancelled" },
      { name: "startsAt", label: "Starts", type: "datetime-local", required: true },
      { name: "checkInOpensAt", label: "Check-in opens", type: "datetime-local", hint: "Nothing: nobody has to check in" },
      { name: "endsAt", label: "Ends", type: "datetime-local", hint: "Best score: required. Else it is cancelled then, if nobody has won" },
      { name: "token", label: "Token", type: "select", options: [{ value: "", text: "none: free, without a prize" }, ...own.map((t) => ({ value: String(t.id), text: t.tokenId }))] },
      { name: "fee", label: "Fee", type: "number", value: "0" },
      { name: "prize", label: "Added prize", type: "number", hint: "Nothing: the fees are the pot" },
      { name: "from", label: "The added prize comes from", type: "select", options: [{ value: "house", text: "the house" }, { value: "mint", text: "new units, made for it" }] },
      { name: "parts", label: "Parts of the pot by place", value: "100", required: true, hint: "Percent, with commas: 70, 30" },
    ],
    method: "POST", path: listPath(game),
    body: (v) => ({
      name: v.name, format: v.format, maxEntrants: Number(v.max), minEntrants: Number(v.min), payout: partsOf(v.parts!),
      startsAt: timeOf(v.startsAt), checkInOpensAt: timeOf(v.checkInOpensAt), endsAt: timeOf(v.endsAt),
      ...(v.token ? { entryTokenId: Number(v.token), entryFee: v.fee || "0" } : {}),
      ...(v.token && v.prize ? { addedPrize: { amount: v.prize, from: v.from } } : {}),
    }),
    done: "The tournament is open.", then,
  };
}

export function TournamentsScreen() {
  const [game, setGame] = useState("");
  const [status, setStatus] = useState("");
  const { list: tokens } = useTokens();
  const list = usePages<Tournament>(game ? withQuery("/api/v1/tournaments", { gameId: game, status, limit: 25 }) : null);
  return (
    <>
      <div class="head">
        <h1>Tournaments</h1>
        <div class="actions">
          {game ? <ActButton label="New tournament…" act={create(game, tokens, list.reload)} primary /> : null}
          <Refresh reload={list.reload} />
        </div>
      </div>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <GameSelect value={game} first onChange={setGame} />
        <StatusSelect statuses={statuses} value={status} onChange={setStatus} />
      </form>
      <ProblemNote problem={list.problem} retry={list.reload} />
      {game === "" ? <p class="empty">Tournaments belong to a game: choose one.</p> : (
        <Table label="Tournaments, newest first" items={list.value} id={(t) => t.tournamentId} empty="No tournament matches." columns={[
          { head: "Tournament", cell: (t) => <a href={`#/tournaments/${t.gameId}.${t.tournamentId}`}>{t.name} <span class="muted">#{t.tournamentId}</span></a> },
          { head: "Status", cell: (t) => <StatusBadge status={t.status} /> },
          { head: "Format", cell: (t) => t.format },
          { head: "Players", num: true, cell: (t) => `${t.entrants} of ${t.maxEntrants}` },
          { head: "Fee", num: true, cell: (t) => amountIn(t, t.entryFeeAmount) },
          { head: "Pot", num: true, cell: (t) => amountIn(t, t.potAmount) },
          { head: "Start", cell: (t) => t.startedAt ? <>started <Time at={t.startedAt} /></> : <Time at={t.startsAt} /> },
        ]} />
      )}
      <More more={list.more} />
    </>
  );
}

/** The acts on a tournament that is neither settled nor cancelled. */
function TournamentActs({ t, path, then }: { t: Tournament; path: string; then: () => void }) {
  const act = (verb: string, more: Omit<Act, "method" | "path" | "then">): Act => ({ ...more, method: "POST", path: `${path}/${verb}`, then });
  const waits = beforeStart.includes(t.status);
  return (
    <>
      {waits ? <ActButton label="Start…" act={act("start", {
        title: "Start the tournament now", button: "Start it",
        says: <>It has {t.entrants} players{t.status === "CHECK_IN" ? <>, of whom {t.checkedIn} checked in</> : null}; with fewer than {t.minEntrants} it is cancelled.</>,
        done: "The tournament has started, or was cancelled for too few players.",
      })} /> : null}
      {waits || t.status === "RUNNING" ? <ActButton label="Cancel…" act={act("cancel", {
        title: "Cancel the tournament", danger: true, button: "Cancel it",
        says: "Every fee goes back, and the added prize to where it came from. This cannot be undone.", done: "The tournament is cancelled.",
        fields: reasonField, body: reasonBody,
      })} /> : null}
    </>
  );
}

/** The act that names the winner of a match. */
const resolve = (path: string, m: Match, name: (user: number) => string, then: () => void): Act => ({
  title: `Decide match ${m.matchId}`, danger: true, button: "Decide it",
  says: "The match ends with this winner, whatever its room does. This cannot be undone.",
  fields: [{
    name: "winner", label: "Winner", type: "select", options: m.players.map((p) => ({ value: String(p.userId), text: `${name(p.userId)} #${p.userId}` })),
  }],
  method: "POST", path: `${path}/matches/${m.matchId}/resolve`, body: ({ winner }) => ({ winnerId: Number(winner) }),
  done: "The match is decided.", then,
});

const disqualify = (path: string, e: Entrant, status: string, then: () => void): Act => ({
  title: "Disqualify the player", danger: true, button: "Disqualify",
  says: <><b>{e.user.username}</b> #{e.user.id} is out for good and gets no prize. {beforeStart.includes(status) ? "The fee goes back." : "The fee stays in the pot."}</>,
  method: "POST", path: `${path}/entrants/${e.user.id}/disqualify`, done: "The player is disqualified.", then,
  fields: reasonField, body: reasonBody,
});

export function TournamentScreen({ id }: { id: string }) {
  const [game, number] = id.split(".") as [string, string];
  const path = `${listPath(game)}/${encodeURIComponent(number)}`;
  const own = (part = "", query = {}) => withQuery(`/api/v1/tournaments/${encodeURIComponent(number)}${part}`, { gameId: game, ...query });
  const read = useRead<Tournament>(own(), 2000);
  const t = read.value;
  const [chosen, setChosen] = useState<number | null>(null);
  const round = chosen ?? t?.round ?? 0;
  const standings = usePages<Standing>(t?.startedAt ? own("/standings", { limit: 25 }) : null);
  const matches = usePages<Match>(round > 0 ? own("/matches", { round, limit: 25 }) : null);
  const entrants = usePages<Entrant>(t ? own("/entrants", { limit: 25 }) : null);
  const reload = () => { read.reload(); standings.reload(); matches.reload(); entrants.reload(); };
  useEffect(() => { if (t) reload(); }, [t?.version]);
  if (!t) return <><h1>Tournament</h1><ProblemNote problem={read.problem} retry={read.reload} /></>;
  const users = [...entrants.value ?? [], ...standings.value ?? []].map((one) => one.user);
  const nameOf = (user: number) => users.find((one) => one.id === user)?.username ?? "player";
  const running = t.status === "RUNNING";
  return (
    <>
      <div class="head">
        <h1>{t.name} <StatusBadge status={t.status} /></h1>
        <div class="actions"><TournamentActs t={t} path={path} then={reload} /><Refresh reload={reload} /></div>
      </div>
      <ProblemNote problem={read.problem} retry={read.reload} />
      <Facts rows={[
        ["Game", <GameLink id={t.gameId} />],
        ["Format", formats[t.format] ?? t.format],
        ["Players", `${t.entrants}, from ${t.minEntrants} to ${t.maxEntrants}`],
        ...(t.checkInOpensAt ? [["Checked in", t.checkedIn], ["Check-in opens", <Time at={t.checkInOpensAt} />]] as [string, preact.ComponentChildren][] : []),
        ["Fee", amountIn(t, t.entryFeeAmount)],
        ...(t.entryToken ? [
          ["Pot", <>{amountIn(t, t.potAmount)}{t.addedPrize ? <>, {amountIn(t, t.addedPrizeAmount)} of it {t.addedPrize.from === "house" ? "from the house" : "newly made"}</> : null}</>],
          ["Parts by place", t.payout.map(percent).join(", ")], ["Rake", t.status === "FINISHED" ? amountIn(t, t.rakeAmount) : percent(t.rakeBps)],
        ] as [string, preact.ComponentChildren][] : []),
        ["Registration opens", <Time at={t.registrationOpensAt} />],
        [t.startedAt ? "Started" : "Starts", <Time at={t.startedAt ?? t.startsAt} />],
        [t.endedAt ? "Ended" : "Ends", <Time at={t.endedAt ?? t.endsAt} />],
        ...(t.reason ? [["Cancelled", reasons[t.reason] ?? t.reason]] as [string, string][] : []),
        ...(t.format === "score" ? [["Leaderboard", <a href={`#/leaderboards/${t.gameId}.tour-${t.tournamentId}`}>tour-{t.tournamentId}</a>]] as [string, preact.ComponentChildren][] : []),
      ]} />
      {t.startedAt ? (
        <Section title="Standings">
          <ProblemNote problem={standings.problem} retry={standings.reload} />
          <Table label="Standings" items={standings.value} id={(s) => s.user.id} empty="Nobody has a place yet." columns={[
            { head: "Place", num: true, cell: (s) => s.place },
            { head: "Player", cell: (s) => <PlayerLink id={s.user.id} name={s.user.username} /> },
            { head: t.format === "score" ? "Score" : "Points", num: true, cell: (s) => s.points },
            ...(t.format === "score" ? [] : [{ head: "Won, drawn, lost", num: true, cell: (s: Standing) => `${s.wins}, ${s.draws}, ${s.losses}` }]),
            { head: "Prize", num: true, cell: (s) => s.amount === null ? <span class="muted">–</span> : amountIn(t, s.amount) },
          ]} />
          <More more={standings.more} />
        </Section>
      ) : null}
      {round > 0 ? (
        <Section title={`Matches of round ${round}`}>
          {t.round > 1 ? (
            <form class="filters" onSubmit={(event) => event.preventDefault()}>
              <p class="field">
                <label for="round">Round</label>
                <select id="round" value={round} onChange={(event) => setChosen(Number(event.currentTarget.value))}>
                  {Array.from({ length: t.round }, (_, i) => <option key={i} value={i + 1}>{i + 1}</option>)}
                </select>
              </p>
            </form>
          ) : null}
          <ProblemNote problem={matches.problem} retry={matches.reload} />
          <Table label={`Matches of round ${round}`} items={matches.value} id={(m) => m.matchId} empty="The round has no match." columns={[
            { head: "Match", cell: (m) => m.matchId },
            { head: "Players", cell: (m) => m.players.map((p, i) => <>{i > 0 ? " and " : ""}<PlayerLink id={p.userId} name={nameOf(p.userId)} /></>) },
            { head: "Status", cell: (m) => <StatusBadge status={m.status} /> },
            { head: "Room", cell: (m) => m.roomId ? <RoomLink id={m.roomId} /> : "–" },
            { head: "Winner", cell: (m) => m.winnerId ? <PlayerLink id={m.winnerId} name={nameOf(m.winnerId)} /> : "–" },
            { head: "Decided by", cell: (m) => m.reason ? matchReasons[m.reason] ?? m.reason : "–" },
            { head: "Deadline", cell: (m) => <Time at={m.deadline} /> },
            ...(running ? [{ head: "Act", cell: (m: Match) => m.status !== "DECIDED" && m.players.length > 0
              ? <ActButton label="Decide…" act={resolve(path, m, nameOf, reload)} /> : null }] : []),
          ]} />
          <More more={matches.more} />
        </Section>
      ) : null}
      <Section title="Players">
        <ProblemNote problem={entrants.problem} retry={entrants.reload} />
        <Table label="Players in the order of joining" items={entrants.value} id={(e) => e.user.id} empty="Nobody has joined." columns={[
          { head: "Player", cell: (e) => <PlayerLink id={e.user.id} name={e.user.username} /> },
          { head: "Status", cell: (e) => <StatusBadge status={e.status} /> },
          ...(t.endedAt || t.status === "SETTLING" ? [
            { head: "Place", num: true, cell: (e: Entrant) => e.place ?? "–" },
            { head: "Prize", num: true, cell: (e: Entrant) => e.amount === null ? "–" : amountIn(t, e.amount) },
          ] : []),
          { head: "Seed", num: true, cell: (e) => e.seed ?? "–" },
          { head: "Joined", cell: (e) => <Time at={e.joinedAt} /> },
          ...(t.checkInOpensAt ? [{ head: "Checked in", cell: (e: Entrant) => <Time at={e.checkedInAt} /> }] : []),
          ...(running || beforeStart.includes(t.status) ? [{ head: "Act", cell: (e: Entrant) => e.status !== "disqualified"
            ? <ActButton label="Disqualify…" act={disqualify(path, e, t.status, reload)} /> : null }] : []),
        ]} />
        <More more={entrants.more} />
      </Section>
    </>
  );
}
