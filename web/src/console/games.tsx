import { useState } from "preact/hooks";
import { ActivitySection } from "./activity";
import { renameGame } from "./names";
import type { Asset, Game, Token } from "./types";
import {
  type Act, ActButton, Amount, Badge, CopiedCode, Facts, type Field, More, ProblemNote, Refresh, Section, Table, Time, usePages, useRead, useTokens,
} from "./ui";
import { WebhooksSection } from "./webhooks";

/** Returns the lines of a text that are not empty. */
const lines = (text: string): string[] => text.split("\n").map((line) => line.trim()).filter((line) => line !== "");

/** Parses a JSON object that somebody typed. */
function parseObject(name: string, text: string): object {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(`${name} is not JSON.`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error(`${name} must be an object.`);
  return value;
}

/** Returns a whole number, or null for nothing. */
function parseCount(name: string, text: string): number | null {
  if (text.trim() === "") return null;
  if (!/^\d+$/.test(text.trim())) throw new Error(`${name} must be a whole number, or nothing.`);
  return Number(text);
}

/** The key that a new game or server key has, which is shown once. */
function KeyNote({ value }: { value: string | null }) {
  return value ? (
    <p class="notice good" role="status"><strong>Server key, shown this once:</strong> <code class="wrap">{value}</code></p>
  ) : null;
}

/** The page of a game, with the address of this node. */
const pageOf = (game: Game) => `<script src="${location.origin}/sdk/v1.js" crossorigin="anonymous"></script>
<script type="module">
  const parlor = Parlor.init({ gameId: ${game.id} });
  const room = await parlor.rooms.quick({ maxPlayers: 2 });
</script>`;

/** What is to be done with a game that was just registered. */
function NextSteps({ game, serverKey }: { game: Game; serverKey: string }) {
  return (
    <Section title={`Next steps for ${game.name} #${game.id}`}>
      <KeyNote value={serverKey} />
      <ol class="steps">
        <li><b>Keep the server key</b> on your server, in no page. It may report results and credit players.
          Further keys are made on the <a href={`#/games/${game.id}`}>screen of the game</a>.</li>
        <li><b>Name the origins of its pages.</b>{" "}
          {game.origins.length > 0 ? <>Pages of <code>{game.origins.join(", ")}</code> may use it.</>
            : <>None is named yet, so pages of other origins cannot use it. <a href={`#/games/${game.id}`}>Edit the game</a>, and add for example <code>http://localhost:5173</code>.</>}</li>
        <li><b>Put this into the page:</b>
          <CopiedCode text={pageOf(game)} label="The page of the game" /></li>
        <li><b>Go on</b> with <a href="/docs/first-game">your first game</a>. A stake needs a token: see <a href="#/tokens">Tokens</a>.</li>
      </ol>
    </Section>
  );
}

export function GamesScreen() {
  const games = usePages<Game>("/api/v1/admin/games?limit=50");
  const [made, setMade] = useState<{ game: Game; serverKey: string } | null>(null);
  const create: Act = {
    title: "New game", button: "Register", method: "POST", path: "/api/v1/admin/games",
    fields: [
      { name: "name", label: "Name", required: true },
      { name: "origins", label: "Origins", type: "textarea", hint: "One a line, such as https://duel.example or https://*.duel.example" },
    ],
    body: ({ name, origins }) => ({ name, origins: lines(origins!) }), done: "The game is registered.",
    then: (answer) => { setMade(answer as { game: Game; serverKey: string }); games.reload(); },
  };
  return (
    <>
      <div class="head"><h1>Games</h1><div class="actions"><ActButton label="New game…" act={create} primary /><Refresh reload={games.reload} /></div></div>
      {made ? <NextSteps {...made} /> : null}
      <ProblemNote problem={games.problem} retry={games.reload} />
      <Table label="Games" items={games.value} id={(g) => g.id} empty="No game is registered." columns={[
        { head: "Game", cell: (g) => <a href={`#/games/${g.id}`}>{g.name} <span class="muted">#{g.id}</span></a> },
        { head: "Origins", cell: (g) => <span class="wrap">{g.origins.join(", ") || "none"}</span> },
        { head: "Rake", num: true, cell: (g) => `${Number(g.settings.rakeBps ?? 0) / 100} %` },
        { head: "Server keys", num: true, cell: (g) => g.serverKeys.length },
        { head: "Created", cell: (g) => <Time at={g.createdAt} /> },
      ]} />
      <More more={games.more} />
    </>
  );
}

function editGame(game: Game, tokens: Token[], then: () => void): Act {
  const grant = game.welcomeGrant;
  return {
    title: `Edit ${game.name}`, button: "Save", method: "PATCH", path: `/api/v1/admin/games/${game.id}`,
    says: "Another operator's change since you opened this page is not overwritten.",
    fields: [
      { name: "name", label: "Name", required: true, value: game.name },
      { name: "origins", label: "Origins", type: "textarea", value: game.origins.join("\n"), hint: "One a line" },
      {
        name: "grantToken", label: "Welcome grant", type: "select", value: grant?.tokenId ?? "",
        options: [{ value: "", text: "none" }, ...tokens.map((t) => ({ value: t.tokenId, text: t.tokenId }))],
      },
      { name: "grantAmount", label: "Amount of the grant", type: "number", value: grant ? String(grant.amount) : "" },
      {
        name: "grantFor", label: "Grant for", type: "select", value: grant?.for ?? "linked",
        options: [{ value: "linked", text: "linked players" }, { value: "any", text: "anybody, guests too" }],
      },
      { name: "settings", label: "Settings", type: "textarea", value: JSON.stringify(game.settings, null, 2), hint: "JSON; docs name each member" },
    ],
    body: (v) => ({
      version: game.version, name: v.name, origins: lines(v.origins!),
      welcomeGrant: v.grantToken ? { tokenId: v.grantToken, amount: v.grantAmount, for: v.grantFor } : null,
      settings: parseObject("Settings", v.settings!),
    }),
    done: "The game is changed.", then: (answer) => {
      renameGame(game.id, (answer as Game).name);
      then();
    },
  };
}

function assetFields(tokens: Token[], asset?: Asset): Field[] {
  return [
    { name: "name", label: "Name", required: true, value: asset?.name },
    ...(asset ? [] : [{ name: "tokenId", label: "Token", type: "select" as const, options: tokens.map((t) => ({ value: t.tokenId, text: t.tokenId })) }]),
    { name: "price", label: "Price", type: "number", required: true, value: asset ? String(asset.price) : "" },
    { name: "stock", label: "Stock", type: "number", value: asset?.stock?.toString() ?? "", hint: "Nothing: without limit" },
    { name: "perUserLimit", label: "Limit per player", type: "number", value: asset?.perUserLimit?.toString() ?? "", hint: "Nothing: without limit" },
    ...(asset ? [{ name: "active", label: "On sale", type: "select" as const, value: String(asset.active), options: [{ value: "true", text: "yes" }, { value: "false", text: "no" }] }] : []),
    { name: "metadata", label: "Metadata", type: "textarea", value: JSON.stringify(asset?.metadata ?? {}, null, 2), hint: "JSON" },
  ];
}

function assetBody(v: Record<string, string>) {
  return {
    name: v.name, price: v.price, stock: parseCount("Stock", v.stock!), perUserLimit: parseCount("Limit per player", v.perUserLimit!),
    metadata: parseObject("Metadata", v.metadata!),
  };
}

export function GameScreen({ id }: { id: string }) {
  const path = `/api/v1/admin/games/${encodeURIComponent(id)}`;
  const read = useRead<Game>(path);
  const assets = usePages<Asset>(read.value ? `${path}/assets?limit=50` : null);
  const { list: tokens, decimals } = useTokens();
  const [key, setKey] = useState<string | null>(null);
  if (!read.value) return <><h1>Game {id}</h1><ProblemNote problem={read.problem} retry={read.reload} /></>;
  const game = read.value;
  const editAsset = (asset: Asset): Act => ({
    title: `Edit ${asset.name}`, button: "Save", method: "PATCH", path: `${path}/assets/${asset.id}`,
    fields: assetFields(tokens, asset), body: (v) => ({ ...assetBody(v), active: v.active === "true" }),
    done: "The asset is changed.", then: assets.reload,
  });
  const createAsset: Act = {
    title: "Put an asset into the catalogue", button: "Create", method: "POST", path: `${path}/assets`,
    fields: assetFields(tokens), body: (v) => ({ ...assetBody(v), tokenId: v.tokenId }),
    done: "The asset is in the catalogue.", then: assets.reload,
  };
  const addKey: Act = {
    title: "Make a server key", button: "Make it", method: "POST", path: `${path}/server-keys`,
    says: "The key is shown once. The keys that the game has stay valid.", done: "The server key is made.",
    then: (answer) => { setKey((answer as { serverKey: string }).serverKey); read.reload(); },
  };
  const revokeKey = (keyID: string): Act => ({
    title: "Revoke the server key", button: "Revoke", danger: true, method: "DELETE", path: `${path}/server-keys/${keyID}`,
    says: <>Key <code>{keyID}</code> is refused at once, and the sessions that it made end.</>,
    done: "The server key is revoked.", then: read.reload,
  });
  return (
    <>
      <div class="head">
        <h1>{game.name} <span class="muted">#{game.id}</span></h1>
        <div class="actions"><ActButton label="Edit…" act={editGame(game, tokens, read.reload)} primary /><Refresh reload={() => { read.reload(); assets.reload(); }} /></div>
      </div>
      <KeyNote value={key} />
      <Facts rows={[
        ["Origins", <span class="wrap">{game.origins.join(", ") || "none"}</span>],
        ["Welcome grant", game.welcomeGrant ? `${game.welcomeGrant.amount} ${game.welcomeGrant.tokenId}, for ${game.welcomeGrant.for}` : "none"],
        ["Created", <Time at={game.createdAt} />],
        ["Version", game.version],
      ]} />
      {game.use && (
        <Section title="Use of the store">
          <Table label="Use of the store" items={Object.entries(game.use)} id={([name]) => name} empty="" columns={[
            { head: "What", cell: ([name]) => name },
            { head: "Used", cell: ([, use]) => use.used.toLocaleString("en") },
            { head: "At most", cell: ([, use]) => (use.max > 0 ? use.max.toLocaleString("en") : "no bound") },
          ]} />
        </Section>
      )}
      <ActivitySection game={game.id} />
      <Section title="Settings">
        <pre class="small tall" tabIndex={0} aria-label="Settings"><code>{JSON.stringify(game.settings, null, 2)}</code></pre>
      </Section>
      <Section title="Server keys" actions={<ActButton label="Make one…" act={addKey} />}>
        <Table label="Server keys" items={game.serverKeys} id={(k) => k.id} empty="The game has no server key." columns={[
          { head: "Key", cell: (k) => <code>{k.id}</code> },
          { head: "Made", cell: (k) => <Time at={k.createdAt} /> },
          { head: "Act", cell: (k) => <ActButton label="Revoke…" act={revokeKey(k.id)} /> },
        ]} />
      </Section>
      <WebhooksSection game={game.id} />
      <Section title="Assets" actions={tokens.length > 0 ? <ActButton label="Create…" act={createAsset} /> : null}>
        <ProblemNote problem={assets.problem} retry={assets.reload} />
        <Table label="Assets" items={assets.value} id={(a) => a.id} empty="The catalogue is empty." columns={[
          { head: "Asset", cell: (a) => <>{a.name} <span class="muted">#{a.id}</span></> },
          { head: "Price", num: true, cell: (a) => <Amount units={a.priceAmount} decimals={decimals(a.tokenId)} code={a.tokenId} /> },
          { head: "Stock", num: true, cell: (a) => a.stock ?? "∞" },
          { head: "Per player", num: true, cell: (a) => a.perUserLimit ?? "∞" },
          { head: "Sold", num: true, cell: (a) => a.sold },
          { head: "On sale", cell: (a) => (a.active ? <Badge text="yes" tone="good" /> : <Badge text="no" />) },
          { head: "Act", cell: (a) => <ActButton label="Edit…" act={editAsset(a)} /> },
        ]} />
        <More more={assets.more} />
      </Section>
    </>
  );
}
