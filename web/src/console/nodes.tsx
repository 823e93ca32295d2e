import { useRef } from "preact/hooks";
import { formatAge, formatBytes, formatCount, toNumber } from "./format";
import { palette, Plot } from "./plot";
import type { Node, Page } from "./types";
import { Badge, ProblemNote, Refresh, Section, Table, Time, useRead, useTokens } from "./ui";

/** What all nodes counted, by interval; times are in seconds. */
interface Series { times: number[]; rate: (pick: (n: Node) => number[]) => number[]; most: (pick: (n: Node) => number[]) => number[] }

/** Lines up the intervals of all nodes, which end at different moments of the same five seconds. */
function lineUp(nodes: Node[]): Series {
  const interval = nodes[0]?.recent.intervalSeconds ?? 5;
  const slot = (n: Node, i: number, length: number) =>
    Math.floor(Date.parse(n.recent.until) / 1000 / interval) - (length - 1 - i);
  const slots = new Set<number>();
  for (const n of nodes) n.recent.requests.forEach((_, i, all) => slots.add(slot(n, i, all.length)));
  const ordered = [...slots].sort((a, b) => a - b).slice(-60);
  const index = new Map(ordered.map((s, i) => [s, i]));
  const combine = (pick: (n: Node) => number[], into: (total: number, value: number) => number) => {
    const totals = ordered.map(() => 0);
    for (const n of nodes) {
      pick(n).forEach((value, i, all) => {
        const at = index.get(slot(n, i, all.length));
        if (at !== undefined) totals[at] = into(totals[at]!, value);
      });
    }
    return totals;
  };
  return {
    times: ordered.map((s) => s * interval),
    rate: (pick) => combine(pick, (total, value) => total + value / interval),
    most: (pick) => combine(pick, Math.max),
  };
}

/** Returns which builds run on how many nodes when there is more than one, else null. */
function describeMixture(nodes: Node[]): string | null {
  const counts = new Map<string, number>();
  for (const n of nodes) {
    const build = n.commit ? `${n.version} (${n.commit.slice(0, 12)})` : n.version;
    counts.set(build, (counts.get(build) ?? 0) + 1);
  }
  if (counts.size < 2) return null;
  return [...counts].map(([build, count]) => `${build} on ${count} ${count === 1 ? "node" : "nodes"}`).join(", ");
}

export function NodesScreen() {
  const read = useRead<Page<Node>>("/api/v1/admin/nodes", 5000);
  const { decimals } = useTokens();
  const last = useRef<Node[] | null>(null);
  if (read.value) last.current = read.value.items;
  const nodes = last.current;
  const series = lineUp(nodes ?? []);
  const mixture = describeMixture(nodes ?? []);
  const codes = [...new Set((nodes ?? []).flatMap((n) => Object.keys(n.recent.moved)))].sort().slice(0, palette.length);
  const zeros = (n: Node) => n.recent.requests.map(() => 0);
  const moved = codes.map((code, i) => ({
    label: code, colour: palette[i]!,
    values: series.rate((n) => n.recent.moved[code]?.map((units) => toNumber(units, decimals(code))) ?? zeros(n)),
  }));
  return (
    <>
      <div class="head"><h1>Nodes</h1><div class="actions"><Refresh reload={read.reload} /></div></div>
      <ProblemNote problem={read.problem} retry={read.reload} />
      {mixture ? (
        <p class="notice warn" role="status">
          <strong>Mixed installation</strong>: {mixture}. When all nodes are new, <code>parlor upgrade check</code> says what is left.
        </p>
      ) : null}
      <Section title="The last five minutes, all nodes together">
        <div class="plots">
          <Plot of="the last five minutes" title="Requests" unit="a second" times={series.times} curves={[
            { label: "all", colour: "--accent", values: series.rate((n) => n.recent.requests) },
            { label: "failed", colour: "--bad", values: series.rate((n) => n.recent.failures) },
          ]} />
          <Plot of="the last five minutes" title="Deliveries" unit="events a second" times={series.times} curves={[
            { label: "events", colour: "--accent", values: series.rate((n) => n.recent.deliveries) },
          ]} />
          <Plot of="the last five minutes" title="Lag" unit="ms from publish to receipt, worst node" times={series.times} curves={[
            { label: "lag", colour: "--warn", values: series.most((n) => n.recent.lagMicros).map((us) => us / 1000) },
          ]} />
          <Plot of="the last five minutes" title="Money moved" unit="units a second" times={series.times}
            curves={moved.length > 0 ? moved : [
              { label: "ledger entries", colour: "--accent", values: series.rate((n) => n.recent.ledgerEntries) },
            ]} />
        </div>
      </Section>
      <Section title="Each node">
        <Table label="Nodes, the oldest first" items={nodes} id={(n) => n.id} empty="No node has reported yet." columns={[
          { head: "Node", cell: (n) => <>{n.host} <span class="muted">{n.id.slice(0, 8)}</span></> },
          {
            head: "State", cell: (n) => Date.now() - Date.parse(n.at) > 15_000 ? <Badge text={`silent for ${formatAge(n.at)}`} tone="bad" />
              : n.draining ? <Badge text="draining" tone="warn" /> : <Badge text="serves" tone="good" />,
          },
          {
            head: "Durability", cell: (n) => n.durability === n.durabilityMode ? n.durability
              : <Badge text={`${n.durability}, less than ${n.durabilityMode}`} tone="bad" />,
          },
          { head: "Sockets", num: true, cell: (n) => formatCount(n.sockets) },
          { head: "Players", num: true, cell: (n) => formatCount(n.players) },
          { head: "Lag", num: true, cell: (n) => `${formatCount(n.lagMicros / 1000)} ms` },
          { head: "Memory", num: true, cell: (n) => formatBytes(n.memoryBytes) },
          { head: "Requests", num: true, cell: (n) => formatCount(n.requests) },
          { head: "Deliveries", num: true, cell: (n) => formatCount(n.deliveries) },
          { head: "Goroutines", num: true, cell: (n) => formatCount(n.goroutines) },
          { head: "Version", cell: (n) => <code title={n.commit}>{n.version}</code> },
          { head: "Layout", num: true, cell: (n) => n.newestLayout === 0 ? "3" : n.newestLayout > n.layout ? `${n.layout}, reads ${n.newestLayout}` : `${n.layout}` },
          { head: "Started", cell: (n) => <Time at={n.startedAt} /> },
        ]} />
      </Section>
    </>
  );
}
