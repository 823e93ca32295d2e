import { useState } from "preact/hooks";
import { withQuery } from "./api";
import { formatTime } from "./format";
import { GameLink, PlayerLink, Ref } from "./names";
import { GameSelect } from "./rooms";
import type { Audit, AuditPart, Entry } from "./types";
import { Amount, More, ProblemNote, Refresh, Section, Table, Time, usePages, useRead, useTokens } from "./ui";

const parts: [AuditPart, string][] = [
  ["minted", "Minted"], ["wallets", "In wallets"], ["escrow", "In rooms"], ["prizes", "Prizes"], ["house", "House"], ["delta", "Difference"],
];

// verdictOf is the audit in one sentence. Sums that agree are no comfort while money is stopped or lost.
function verdictOf(audit: Audit): string {
  if (audit.balanced) return "Balanced: no unit was made or lost.";
  if (!audit.sumsAgree) return "Not balanced: stop money and look into it, this is a defect of Parlor.";
  return audit.stopped?.every((s) => s.cause === "loss")
    ? "Lost: the sums of what is left agree, and no operator has accepted the loss."
    : "Stopped: the sums agree, and no operator has accepted what stopped the money.";
}

export function LedgerScreen() {
  const [game, setGame] = useState("");
  const { decimals } = useTokens();
  const audit = useRead<Audit>(withQuery("/api/v1/admin/audit", { gameId: game }));
  const entries = usePages<Entry>(game ? `/api/v1/admin/games/${game}/ledger?limit=25` : null);
  return (
    <>
      <div class="head"><h1>Ledger</h1><div class="actions">
        <Refresh reload={() => { audit.reload(); entries.reload(); }} /></div></div>
      <form class="filters" onSubmit={(event) => event.preventDefault()}><GameSelect value={game} first onChange={setGame} /></form>
      <Section title="Conservation of money">
        <ProblemNote problem={audit.problem} retry={audit.reload} />
        {audit.value ? (
          <p class={"notice " + (audit.value.balanced ? "good" : "bad")} role="status">
            {verdictOf(audit.value)}
            {" "}<span class="muted">Checked {formatTime(audit.value.checkedAt)}.</span>
          </p>
        ) : null}
        {audit.value?.stopped?.length ? (
          <Table label="What nodes noticed, and no operator has accepted" items={audit.value.stopped}
            id={(s) => `${s.gameId ?? 0}:${s.cause}:${s.at}:${s.reason}`} empty="" columns={[
              { head: "Game", cell: (s) => s.gameId ? <GameLink id={s.gameId} /> : "all" },
              { head: "Cause", cell: (s) => <code>{s.cause}</code> },
              { head: "Since", cell: (s) => <Time at={s.at} /> },
              { head: "Reason", cell: (s) => s.reason },
            ]} />
        ) : null}
        <Table label="Totals of each token" items={audit.value?.tokens ?? null} id={(t) => t.tokenId} empty="No money was ever made."
          columns={[
            { head: "Token", cell: (t) => <code>{t.tokenId}</code> },
            ...parts.map(([part, head]) => ({
              head, num: true,
              cell: (t: Audit["tokens"][number]) => <Amount units={t[`${part}Amount`]} decimals={decimals(t.tokenId)} />,
            })),
          ]} />
      </Section>
      <Section title="Entries">
        <ProblemNote problem={entries.problem} retry={entries.reload} />
        {game === "" ? <p class="empty">Each game has its own ledger: choose one.</p> : <Table label="Entries of the game, newest first" items={entries.value} id={(e) => e.id} empty="No entry is in the store." columns={[
          { head: "No.", num: true, cell: (e) => e.id },
          { head: "At", cell: (e) => <Time at={e.at} /> },
          { head: "Reason", cell: (e) => e.reason },
          {
            head: "Postings", cell: (e) => e.postings.length === 0 ? "free of charge" : (
              <ul class="postings">{e.postings.map((p, i) => (
                <li key={i}><Amount units={p.deltaAmount} decimals={decimals(e.tokenId)} code={e.tokenId} signed />{" "}
                  {p.userId ? <PlayerLink id={p.userId} /> : p.account}</li>
              ))}</ul>
            ),
          },
          { head: "About", cell: (e) => <Ref text={e.ref} game={game} /> },
        ]} />}
        <More more={entries.more} />
      </Section>
    </>
  );
}
