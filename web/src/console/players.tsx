import { useState } from "preact/hooks";
import { call, Problem, withQuery } from "./api";
import { formatBytes } from "./format";
import { LimitsSection } from "./limits";
import { GameLink, PlayerLink, Ref } from "./names";
import { GameSelect } from "./rooms";
import type { Balance, Line, Page, Player, PlayerSession, Save, Token } from "./types";
import {
  type Act, ActButton, Amount, Badge, Facts, More, outcome, ProblemNote, Refresh, Section, Table, Time, usePages,
  useRead, useTokens,
} from "./ui";

export function PlayersScreen() {
  const [game, setGame] = useState("");
  const [id, setID] = useState("");
  const players = usePages<Player>(withQuery("/api/v1/admin/users", { gameId: game, limit: 25 }));
  return (
    <>
      <div class="head"><h1>Players</h1><div class="actions"><Refresh reload={players.reload} /></div></div>
      <div class="filters">
        <form class="inline" onSubmit={(event) => { event.preventDefault(); if (/^\d+$/.test(id)) location.hash = `#/players/${id}`; }}>
          <p class="field">
            <label for="player">Player's number</label>
            <input id="player" inputMode="numeric" pattern="[0-9]+" required value={id} autoComplete="off"
              onInput={(event) => setID(event.currentTarget.value.trim())} />
          </p>
          <button type="submit" class="primary">Open</button>
        </form>
        <GameSelect value={game} onChange={setGame} />
      </div>
      <p class="muted">Names are no index: look for a player by number, or in the list of the newest.</p>
      <ProblemNote problem={players.problem} retry={players.reload} />
      <Table label="Players, newest first" items={players.value} id={(p) => p.id} empty="No players among the newest 500 match."
        columns={[
          { head: "Player", cell: (p) => <PlayerLink id={p.id} name={p.username} /> },
          { head: "State", cell: (p) => (p.suspended ? <Badge text="suspended" tone="bad" /> : <Badge text="active" tone="good" />) },
          { head: "Kind", cell: (p) => p.kind },
          { head: "Game", cell: (p) => <GameLink id={p.gameId} /> },
          { head: "Created", cell: (p) => <Time at={p.createdAt} /> },
        ]} />
      <More more={players.more} />
    </>
  );
}

/** The act that credits or debits a player. */
function adjust(kind: "credit" | "debit", player: Player, tokens: Token[], then: () => void): Act {
  const isCredit = kind === "credit";
  return {
    title: isCredit ? "Credit the player" : "Debit the player", button: isCredit ? "Credit" : "Debit", danger: !isCredit,
    says: isCredit ? <>New units come into being, in the wallet of <b>{player.username}</b>.</>
      : <>Units leave the wallet of <b>{player.username}</b> and the economy.</>,
    fields: [
      { name: "tokenId", label: "Token", type: "select", options: tokens.map((t) => ({ value: t.tokenId, text: `${t.tokenName} (${t.tokenId})` })) },
      { name: "amount", label: "Amount", type: "number", required: true, hint: "In the token's own unit, such as 2.5" },
      { name: "reason", label: "Reason", required: true, hint: "The player reads it in the ledger" },
    ],
    method: "POST", path: `/api/v1/admin/users/${player.id}/${kind}`,
    body: ({ tokenId, amount, reason }) => ({ tokenId, amount, reason }),
    done: isCredit ? "The player is credited." : "The player is debited.", then,
  };
}

function suspend(player: Player, then: () => void): Act {
  return {
    title: "Suspend the player", button: "Suspend", danger: true,
    says: <><b>{player.username}</b> cannot sign in, every call is refused within two seconds, and sockets close. Rooms and stakes stay.</>,
    fields: [
      { name: "reason", label: "Reason", required: true, hint: "For operators; the player does not see it" },
      { name: "until", label: "Until", type: "datetime-local", hint: "Nothing: until it is lifted" },
    ],
    method: "POST", path: `/api/v1/admin/users/${player.id}/suspend`,
    body: ({ reason, until }) => ({ reason, until: until ? new Date(until).toISOString() : null }),
    done: "The player is suspended.", then,
  };
}

function unsuspend(player: Player, then: () => void): Act {
  return {
    title: "Lift the suspension", button: "Lift it", says: <><b>{player.username}</b> may play again at once.</>,
    method: "POST", path: `/api/v1/admin/users/${player.id}/unsuspend`, done: "The suspension is lifted.", then,
  };
}

function endSessions(player: Player, then: () => void): Act {
  return {
    title: "End all sessions", button: "End them", danger: true,
    says: <><b>{player.username}</b> is signed out everywhere within two seconds, and may sign in again.</>,
    method: "DELETE", path: `/api/v1/admin/users/${player.id}/sessions`, done: "The sessions are over.", then,
  };
}

export function PlayerScreen({ id }: { id: string }) {
  const path = `/api/v1/admin/users/${encodeURIComponent(id)}`;
  const read = useRead<{ user: Player; balances: Balance[]; disputesLost: number }>(path);
  const { list: tokens, decimals } = useTokens();
  const [token, setToken] = useState("");
  const known = read.value !== null;
  const ledger = usePages<Line>(known ? withQuery(`${path}/ledger`, { tokenId: token, limit: 20 }) : null);
  const saves = useRead<Page<Save>>(known ? `${path}/saves` : null);
  const sessions = useRead<Page<PlayerSession>>(known ? `${path}/sessions` : null);
  const reload = () => { read.reload(); ledger.reload(); sessions.reload(); };
  if (!read.value) return <><h1>Player {id}</h1><ProblemNote problem={read.problem} retry={read.reload} /></>;
  const { user, balances, disputesLost } = read.value;
  return (
    <>
      <div class="head">
        <h1>{user.username} <span class="muted">#{user.id}</span> {user.suspended ? <Badge text="suspended" tone="bad" /> : null}</h1>
        <div class="actions">
          {user.suspended ? <ActButton label="Lift the suspension…" act={unsuspend(user, reload)} /> : null}
          <ActButton label={user.suspended ? "Suspend anew…" : "Suspend…"} act={suspend(user, reload)} />
          <Refresh reload={reload} />
        </div>
      </div>
      <ProblemNote problem={read.problem} retry={read.reload} />
      <Facts rows={[
        ["Game", <GameLink id={user.gameId} />],
        ["Kind", user.kind],
        ["Created", <Time at={user.createdAt} />],
        ["Disputes lost", disputesLost],
        ["Avatar", user.avatar ? <code class="wrap">{user.avatar}</code> : "–"],
        ...(user.suspended ? [
          ["Suspended for", user.suspended.reason] as [string, string],
          ["Suspended until", user.suspended.until ? <Time at={user.suspended.until} /> : "it is lifted"] as [string, string],
        ] : []),
      ]} />
      <Section title="Balances" actions={tokens.length > 0 ? <>
        <ActButton label="Credit…" act={adjust("credit", user, tokens, reload)} />
        <ActButton label="Debit…" act={adjust("debit", user, tokens, reload)} /></> : null}>
        <Table label="Balances" items={balances} id={(b) => b.tokenId} empty="The player never had anything." columns={[
          { head: "Token", cell: (b) => <>{b.tokenName} <span class="muted">{b.tokenId}</span></> },
          { head: "Can be spent", num: true, cell: (b) => <Amount units={b.amount} decimals={Number(b.metadata.decimals)} /> },
          { head: "Held in rooms", num: true, cell: (b) => <Amount units={b.heldAmount} decimals={Number(b.metadata.decimals)} /> },
        ]} />
      </Section>
      <LimitsSection player={user} />
      <Section title="Ledger" actions={
        <label class="small">Token <select value={token} onChange={(event) => setToken(event.currentTarget.value)}>
          <option value="">All</option>
          {tokens.map((t) => <option key={t.tokenId} value={t.tokenId}>{t.tokenId}</option>)}
        </select></label>}>
        <ProblemNote problem={ledger.problem} retry={ledger.reload} />
        <Table label="Ledger, newest first" items={ledger.value} id={(l) => l.id} empty="No line." columns={[
          { head: "No.", num: true, cell: (l) => l.id },
          { head: "At", cell: (l) => <Time at={l.at} /> },
          { head: "Change", num: true, cell: (l) => <Amount units={l.deltaAmount} decimals={decimals(l.tokenId)} code={l.tokenId} signed /> },
          { head: "After it", num: true, cell: (l) => <Amount units={l.balanceAfterAmount} decimals={decimals(l.tokenId)} /> },
          { head: "Reason", cell: (l) => l.reason },
          { head: "About", cell: (l) => <Ref text={l.ref} game={user.gameId} /> },
        ]} />
        <More more={ledger.more} />
      </Section>
      <Section title="Saves">
        <ProblemNote problem={saves.problem} retry={saves.reload} />
        <Saves path={path} saves={saves.value?.items ?? null} />
      </Section>
      <Section title="Sessions" actions={<ActButton label="End all…" act={endSessions(user, reload)} />}>
        <ProblemNote problem={sessions.problem} retry={sessions.reload} />
        <Table label="Sessions that can be refreshed" items={sessions.value?.items ?? null} id={(s) => s.startedAt + s.expiresAt}
          empty="No session can be refreshed." columns={[
            { head: "Began", cell: (s) => <Time at={s.startedAt} /> },
            { head: "Refreshed", cell: (s) => <Time at={s.refreshedAt} /> },
            { head: "Expires", cell: (s) => <Time at={s.expiresAt} /> },
            { head: "Made by", cell: (s) => (s.serverKeyId ? <>server key <code>{s.serverKeyId}</code></> : "the player") },
          ]} />
      </Section>
    </>
  );
}

function Saves({ path, saves }: { path: string; saves: Save[] | null }) {
  const [shown, setShown] = useState<{ slot: string; text: string } | null>(null);
  const show = async (slot: string) => {
    try {
      const save = await call<{ state: object }>("GET", `${path}/saves/${encodeURIComponent(slot)}`);
      setShown({ slot, text: JSON.stringify(save.state, null, 2) });
    } catch (cause) {
      if (cause instanceof Problem) outcome.value = cause.message;
    }
  };
  return (
    <>
      <Table label="Saves" items={saves} id={(s) => s.slot} empty="Nothing is saved." columns={[
        { head: "Slot", cell: (s) => <code>{s.slot}</code> },
        { head: "Version", num: true, cell: (s) => s.version },
        { head: "Size", num: true, cell: (s) => formatBytes(s.size) },
        { head: "Saved", cell: (s) => <Time at={s.savedAt} /> },
        { head: "State", cell: (s) => <button type="button" class="small" onClick={() => void show(s.slot)}>Show<span class="visually-hidden"> the slot {s.slot}</span></button> },
      ]} />
      {shown ? <><h3>State of <code>{shown.slot}</code></h3><pre tabIndex={0} aria-label={`State of ${shown.slot}`} class="tall"><code>{shown.text}</code></pre></> : null}
    </>
  );
}
