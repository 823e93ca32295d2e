import type { Page, Token } from "./types";
import { type Act, ActButton, type Field, ProblemNote, Refresh, Table, useRead } from "./ui";

/** Parses lines of a game and what its server keys may credit in a day. */
function parseGames(text: string): { gameId: number; mintLimitPerDay: string }[] {
  return text.split("\n").filter((line) => line.trim() !== "").map((line) => {
    const match = /^\s*(\d+)\s+(\d+(?:\.\d+)?)\s*$/.exec(line);
    if (!match) throw new Error(`“${line.trim()}” is not a game and an amount.`);
    return { gameId: Number(match[1]), mintLimitPerDay: match[2]! };
  });
}

const gamesField = (token?: Token): Field => ({
  name: "games", label: "Games", type: "textarea", hint: "One a line: a game's number and what its server keys may credit in a day, such as “1 1000”",
  value: token?.games?.map((g) => `${g.gameId} ${g.mintLimitPerDay}`).join("\n"),
});

export function TokensScreen() {
  const tokens = useRead<Page<Token>>("/api/v1/admin/tokens");
  const create: Act = {
    title: "Define a token", button: "Define", method: "POST", path: "/api/v1/admin/tokens",
    says: "The code and the decimals never change.",
    fields: [
      { name: "tokenId", label: "Code", required: true, hint: "Such as GOLD" },
      { name: "tokenName", label: "Name", required: true },
      { name: "decimals", label: "Decimals", type: "number", value: "2", required: true, hint: "0 to 18" },
      gamesField(),
    ],
    body: (v) => ({ tokenId: v.tokenId, tokenName: v.tokenName, metadata: { decimals: v.decimals }, games: parseGames(v.games!) }),
    done: "The token is defined.", then: tokens.reload,
  };
  const edit = (token: Token): Act => ({
    title: `Edit ${token.tokenId}`, button: "Save", method: "PATCH", path: `/api/v1/admin/tokens/${encodeURIComponent(token.tokenId)}`,
    fields: [
      { name: "tokenName", label: "Name", required: true, value: token.tokenName },
      { name: "logoUrl", label: "Logo", value: token.logoUrl ?? "", hint: "An https address, or nothing" },
      gamesField(token),
    ],
    body: (v) => ({ tokenName: v.tokenName, logoUrl: v.logoUrl || null, games: parseGames(v.games!) }),
    done: "The token is changed.", then: tokens.reload,
  });
  return (
    <>
      <div class="head"><h1>Tokens</h1><div class="actions"><ActButton label="Define…" act={create} primary /><Refresh reload={tokens.reload} /></div></div>
      <ProblemNote problem={tokens.problem} retry={tokens.reload} />
      <Table label="Tokens" items={tokens.value?.items ?? null} id={(t) => t.id} empty="No token is defined." columns={[
        { head: "Code", cell: (t) => <code>{t.tokenId}</code> },
        { head: "Name", cell: (t) => t.tokenName },
        { head: "Decimals", num: true, cell: (t) => t.metadata.decimals },
        { head: "In existence", num: true, cell: (t) => <span class="amount">{t.volume.toLocaleString(undefined, { maximumFractionDigits: 18 })}</span> },
        { head: "Games that may credit", cell: (t) => t.games?.map((g) => `#${g.gameId}: ${g.mintLimitPerDay} a day`).join(", ") || "none" },
        { head: "Act", cell: (t) => <ActButton label="Edit…" act={edit(t)} /> },
      ]} />
    </>
  );
}
