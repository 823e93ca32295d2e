import { toNumber, zone } from "./format";
import { palette, Plot } from "./plot";
import type { ActivitySample, Page } from "./types";
import { ProblemNote, Refresh, Section, useRead, useTokens } from "./ui";

/** How busy a game was in the last day: a node takes a sample each five minutes. */
export function ActivitySection({ game }: { game: number }) {
  const read = useRead<Page<ActivitySample>>(`/api/v1/admin/games/${game}/activity`, 300_000);
  const { decimals } = useTokens();
  const samples = read.value?.items ?? [];
  const times = samples.map((s) => Date.parse(s.at) / 1000);
  const codes = [...new Set(samples.flatMap((s) => s.pots.map((p) => p.tokenId)))].sort().slice(0, palette.length);
  return (
    <Section title="The last day" actions={<Refresh reload={read.reload} />}>
      <ProblemNote problem={read.problem} retry={read.reload} />
      {read.value && samples.length === 0 ? <p class="empty">Nobody has played in the last day. A sample is taken each five minutes.</p> : null}
      {samples.length > 0 ? (
        <>
          <p class="muted">A sample each five minutes. Times are those of {zone}.</p>
          <div class="plots">
            <Plot title="Players" of="the last day" unit="in rooms that have not ended" times={times} curves={[
              { label: "players", colour: "--accent", values: samples.map((s) => s.players) },
              { label: "rooms", colour: "--good", values: samples.map((s) => s.rooms) },
            ]} />
            {codes.length > 0 ? (
              <Plot title="At stake" of="the last day" unit="entries and fees" times={times} curves={codes.map((code, i) => ({
                label: code, colour: palette[i]!,
                values: samples.map((s) => toNumber(s.pots.find((p) => p.tokenId === code)?.potAmount ?? "0", decimals(code))),
              }))} />
            ) : null}
          </div>
        </>
      ) : null}
    </Section>
  );
}
