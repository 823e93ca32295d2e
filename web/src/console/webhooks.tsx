import { useState } from "preact/hooks";
import { withQuery } from "./api";
import { GameLink, RoomLink } from "./names";
import type { Page, Webhook, WebhookAttempt } from "./types";
import {
  type Act, ActButton, Badge, CopiedCode, Facts, type Field, isBadOutcome, outcome, ProblemNote, Refresh, Section, Table, Time, useRead,
} from "./ui";

const tones: Record<string, string> = {
  ok: "good", failing: "warn", disabled: "bad", delivered: "good", failed: "bad", parked: "warn", test: "new",
};

const StateBadge = ({ state }: { state: string }) => <Badge text={state} tone={tones[state]} />;

const pathOf = (game: number | string) => `/api/v1/admin/games/${encodeURIComponent(game)}/webhooks`;

/** What a webhook can get, and what it says to whoever chooses it. */
const kinds: [string, string][] = [
  ["rooms", "rooms: created, started, finished, cancelled, disputed"],
  ["rooms,seats", "rooms, and who joins and leaves"],
  ["rooms,seats,tournaments", "rooms, seats and tournaments"],
  ["tournaments", "tournaments"],
  ["money", "money: entries of the ledger beside those of rooms"],
  ["rooms,seats,tournaments,money", "everything"],
];

function fieldsOf(webhook?: Webhook): Field[] {
  const current = webhook?.kinds.join(",");
  const known = kinds.some(([value]) => value === current);
  return [
    { name: "url", label: "Address", required: true, value: webhook?.url ?? "", hint: "https, and public where the installation allows no other network" },
    {
      name: "kinds", label: "Gets", type: "select", value: current ?? "rooms",
      options: [...(current && !known ? [{ value: current, text: current }] : []), ...kinds.map(([value, text]) => ({ value, text }))],
    },
    { name: "description", label: "Description", value: webhook?.description ?? "" },
  ];
}

const bodyOf = (v: Record<string, string>) => ({ url: v.url, kinds: v.kinds!.split(","), description: v.description });

/** A secret of a webhook, which is shown once. */
function SecretNote({ value }: { value: string | null }) {
  return value ? (
    <div class="notice good" role="status"><strong>Secret, shown this once.</strong> The receiver verifies messages with it:
      <CopiedCode text={value} label="The secret" /></div>
  ) : null;
}

const lagOf = (webhook: Webhook) => (webhook.lagSeconds > 0 ? `${webhook.lagSeconds.toLocaleString("en", { maximumFractionDigits: 1 })} s` : "–");

/** The webhooks of a game. */
export function WebhooksSection({ game }: { game: number }) {
  const read = useRead<Page<Webhook>>(pathOf(game), 5_000);
  const [secret, setSecret] = useState<string | null>(null);
  const create: Act = {
    title: "Send events to an address", button: "Create", method: "POST", path: pathOf(game), fields: fieldsOf(), body: bodyOf,
    says: "It gets what happens from now on, in rooms that are made from now on.", done: "The webhook is made.",
    then: (answer) => { setSecret((answer as { secret: string }).secret); read.reload(); },
  };
  return (
    <Section title="Webhooks" actions={<ActButton label="Create one…" act={create} />}>
      <SecretNote value={secret} />
      <ProblemNote problem={read.problem} retry={read.reload} />
      <Table label="Webhooks" items={read.value?.items ?? null} id={(w) => w.webhookId} empty="Events of the game are sent nowhere." columns={[
        { head: "Address", cell: (w) => <a class="wrap" href={`#/webhooks/${game}.${w.webhookId}`}>{w.url}</a> },
        { head: "State", cell: (w) => <StateBadge state={w.state} /> },
        { head: "Gets", cell: (w) => w.kinds.join(", ") },
        { head: "Lag", num: true, cell: lagOf },
        { head: "Parked", num: true, cell: (w) => w.parked },
        { head: "Last error", cell: (w) => <span class="wrap">{w.lastError ?? "–"}</span> },
      ]} />
    </Section>
  );
}

/** One webhook, by the id of its game and its own with a full stop between them. */
export function WebhookScreen({ id }: { id: string }) {
  const [game, webhookID] = id.split(".") as [string, string];
  const path = `${pathOf(game)}/${encodeURIComponent(webhookID)}`;
  const [state, setState] = useState("");
  const read = useRead<Webhook>(path, 2_000);
  const attempts = useRead<Page<WebhookAttempt>>(withQuery(`${path}/deliveries`, { state }), 5_000);
  const [secret, setSecret] = useState<string | null>(null);
  const reload = () => { read.reload(); attempts.reload(); };
  if (!read.value) return <><h1>Webhook</h1><ProblemNote problem={read.problem} retry={read.reload} /></>;
  const webhook = read.value;
  const edit: Act = {
    title: "Edit the webhook", button: "Save", method: "PATCH", path, fields: fieldsOf(webhook),
    body: (v) => ({ version: webhook.version, ...bodyOf(v) }), done: "The webhook is changed.", then: reload,
  };
  const turn: Act = webhook.active
    ? {
      title: "Disable the webhook", button: "Disable", danger: true, method: "PATCH", path, body: () => ({ active: false }),
      says: "Nothing is sent. When it is enabled again it goes on where it stands, as far as the events are still stored.",
      done: "The webhook is disabled.", then: reload,
    }
    : {
      title: "Enable the webhook", button: "Enable", method: "PATCH", path, body: () => ({ active: true }),
      says: "It goes on where it stands.", done: "The webhook is enabled.", then: reload,
    };
  const test: Act = {
    title: "Send a test", button: "Send", method: "POST", path: `${path}/test`, says: <>Sends the message <code>webhook.test</code> now.</>,
    done: "The test is sent.", then: (answer) => {
      const attempt = answer as WebhookAttempt;
      isBadOutcome.value = attempt.error !== null;
      outcome.value = attempt.error ? `The test failed: ${attempt.error}.` : `The target answered ${attempt.status} after ${attempt.milliseconds} ms.`;
      reload();
    },
  };
  const rotate: Act = {
    title: "Rotate the secret", button: "Rotate", method: "POST", path: `${path}/rotate-secret`,
    says: "Messages are signed with the former and the new secret for 24 hours.", done: "The webhook has a new secret.",
    then: (answer) => { setSecret((answer as { secret: string }).secret); reload(); },
  };
  const replay: Act = {
    title: "Send again", button: "Send again", method: "POST", path: `${path}/replay`,
    says: "Receivers know events that they have by the header webhook-id.",
    fields: [
      {
        name: "what", label: "What", type: "select",
        options: [{ value: "from", text: "every stored event since a time" }, { value: "parked", text: "what was parked" }],
      },
      { name: "from", label: "Since", type: "datetime-local" },
    ],
    body: (v) => {
      if (v.what === "parked") return { parked: true };
      const from = new Date(v.from!);
      if (Number.isNaN(from.getTime())) throw new Error("Since must be a time.");
      return { from: from.toISOString() };
    },
    done: "It is sent again.", then: reload,
  };
  const remove: Act = {
    title: "Remove the webhook", button: "Remove", danger: true, method: "DELETE", path,
    says: "Events that it waits for are sent no more.", done: "The webhook is removed.",
    then: () => { location.hash = `#/games/${game}`; },
  };
  return (
    <>
      <div class="head">
        <h1 class="wrap">{webhook.url}</h1>
        <div class="actions">
          <ActButton label="Send a test…" act={test} primary /><ActButton label="Edit…" act={edit} />
          <ActButton label="Send again…" act={replay} /><ActButton label="Rotate the secret…" act={rotate} />
          <ActButton label={webhook.active ? "Disable…" : "Enable…"} act={turn} /><ActButton label="Remove…" act={remove} />
          <Refresh reload={reload} />
        </div>
      </div>
      <SecretNote value={secret} />
      {webhook.lastError ? <p class={`notice ${webhook.state === "ok" ? "" : "bad"}`}><strong>Last error</strong>: {webhook.lastError}</p> : null}
      <Facts rows={[
        ["State", <StateBadge state={webhook.state} />],
        ["Lag", lagOf(webhook)],
        ["Rooms that wait", webhook.waitingRooms],
        ["Parked", webhook.parked],
        ["Gets", webhook.kinds.join(", ")],
        ["Game", <GameLink id={webhook.gameId} />],
        ["Description", webhook.description || "none"],
        ["Created", <Time at={webhook.createdAt} />],
      ]} />
      <Section title="Deliveries" actions={
        <p class="field"><label for="delivery-state">Show</label>
          <select id="delivery-state" value={state} onChange={(event) => setState(event.currentTarget.value)}>
            <option value="">all attempts</option>
            {["delivered", "failed", "parked", "test"].map((s) => <option key={s} value={s}>{s}</option>)}
          </select></p>
      }>
        <ProblemNote problem={attempts.problem} retry={attempts.reload} />
        <Table label="Deliveries, newest first" items={attempts.value?.items ?? null} id={(a) => a.id + a.at + a.attempt} empty="Nothing was sent." columns={[
          { head: "At", cell: (a) => <Time at={a.at} /> },
          { head: "State", cell: (a) => <StateBadge state={a.state} /> },
          { head: "Event", cell: (a) => <code>{a.type}</code> },
          { head: "Room", cell: (a) => (a.roomId.includes("-") ? <RoomLink id={a.roomId} /> : a.roomId || "–") },
          { head: "Try", num: true, cell: (a) => a.attempt },
          { head: "Status", num: true, cell: (a) => a.status || "–" },
          { head: "Took", num: true, cell: (a) => `${a.milliseconds} ms` },
          { head: "Response", cell: (a) => <code class="data">{a.error && !a.status ? a.error : a.response || "empty"}</code> },
        ]} />
      </Section>
    </>
  );
}
