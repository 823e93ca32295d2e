import type { ComponentChildren } from "preact";
import type { Limits, Player, Token } from "./types";
import {
  type Act, ActButton, Amount, Badge, ProblemNote, Section, Table, Time, useRead, useTokens,
} from "./ui";

const names: Record<string, string> = {
  maxStake: "Highest stake", maxOpenRooms: "Open rooms", maxLoss24h: "Loss in 24 h",
};

const none = <span class="muted">no limit</span>;

/** The act that tightens the limits of a player. Only the player can loosen them. */
function tighten(player: Player, tokens: Token[], then: () => void): Act {
  const options = tokens.map((t) => ({ value: t.tokenId, text: `${t.tokenName} (${t.tokenId})` }));
  const unchanged = "Nothing: as it is";
  return {
    title: "Tighten the limits", button: "Tighten", danger: true,
    says: <>They count at once. Only <b>{player.username}</b> can loosen them again, and then 24 hours pass. Leaving a room and payouts go on.</>,
    fields: [
      { name: "tokenId", label: "Token", type: "select", options },
      { name: "maxStake", label: "Highest stake of a room", type: "number", hint: unchanged },
      { name: "maxOpenRooms", label: "Rooms with a stake at once", type: "number", hint: unchanged },
      { name: "maxLoss24h", label: "Highest loss in 24 hours", type: "number", hint: unchanged },
    ],
    method: "PUT", path: `/api/v1/admin/users/${player.id}/limits`,
    body: ({ tokenId, maxStake, maxOpenRooms, maxLoss24h }) => {
      if (maxOpenRooms && !/^\d+$/.test(maxOpenRooms)) throw new Error("The number of rooms must be 0 or more");
      return {
        tokenId, maxStake: maxStake || undefined, maxOpenRooms: maxOpenRooms ? Number(maxOpenRooms) : undefined,
        maxLoss24h: maxLoss24h || undefined,
      };
    },
    done: "The limits are tighter.", then,
  };
}

/** The act that keeps a player out of all paid rooms. It cannot be undone before its end. */
function exclude(player: Player, tokens: Token[], then: () => void): Act {
  return {
    title: "Exclude the player", button: "Exclude", danger: true,
    says: <><b>{player.username}</b> takes part in no paid room until then. Nobody can end this earlier.</>,
    fields: [{ name: "until", label: "Until", type: "datetime-local", required: true }],
    method: "PUT", path: `/api/v1/admin/users/${player.id}/limits`,
    body: ({ until }) => ({ tokenId: tokens[0]?.tokenId, excludedUntil: until ? new Date(until).toISOString() : undefined }),
    done: "The player is excluded.", then,
  };
}

/** Shows a limit with what it is compared with, "1 of 3". */
const Used = ({ used, limit }: { used: ComponentChildren; limit: ComponentChildren }) =>
  <>{used === null ? null : <>{used} of </>}{limit}</>;

/** What a player set for stakes, what counts now and what will. */
export function LimitsSection({ player }: { player: Player }) {
  const read = useRead<{ excludedUntil: string | null; items: Limits[] }>(`/api/v1/admin/users/${player.id}/limits`);
  const { list: tokens, decimals } = useTokens();
  const amount = (units: string | null, code: string) =>
    units === null ? none : <Amount units={units} decimals={decimals(code)} />;
  return (
    <Section title="Limits of stakes" actions={tokens.length > 0 ? <>
      <ActButton label="Tighten…" act={tighten(player, tokens, read.reload)} />
      <ActButton label="Exclude…" act={exclude(player, tokens, read.reload)} /></> : null}>
      <ProblemNote problem={read.problem} retry={read.reload} />
      <p class="muted">Players set them for themselves. A tighter limit counts at once, a looser one after 24 hours.</p>
      {read.value?.excludedUntil
        ? <p><Badge text="excluded" tone="bad" /> from paid rooms until <Time at={read.value.excludedUntil} />.</p> : null}
      <Table label="Limits of stakes" items={read.value?.items ?? null} id={(l) => l.tokenId} empty="The player has no token." columns={[
        { head: "Token", cell: (l) => l.tokenId },
        { head: "Highest stake", num: true, cell: (l) => amount(l.maxStakeAmount, l.tokenId) },
        { head: "Open rooms", num: true, cell: (l) => <Used used={l.openRooms} limit={l.maxOpenRooms ?? none} /> },
        {
          head: "Loss in 24 h", num: true, cell: (l) => <Used limit={amount(l.maxLoss24hAmount, l.tokenId)}
            used={l.lost24hAmount === null ? null : amount(l.lost24hAmount, l.tokenId)} />,
        },
        {
          head: "Will count later", cell: (l) => l.pending.length === 0 ? <span class="muted">–</span> : l.pending.map((p) => (
            <div key={p.limit}>{names[p.limit]}: {p.value === null ? "no limit"
              : p.limit === "maxOpenRooms" ? p.value : amount(p.valueAmount, l.tokenId)}, from <Time at={p.from} /></div>)),
        },
      ]} />
    </Section>
  );
}
