// Curves over time. The library that draws them is read when the first one is shown.
import { useEffect, useRef } from "preact/hooks";
import type uPlot from "uplot";
import { formatCount, formatTick } from "./format";

/** The colours of curves that have no meaning of their own. */
export const palette = ["--accent", "--good", "--warn", "--bad"];

/** One curve: a value for each time, null where nothing is known. */
export interface Curve { label: string; values: (number | null)[]; colour: string }

const token = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Resolves a colour of the theme, light-dark() included, for the canvas. */
function colour(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value || token(name);
}

/** Draws curves over time. `of` says which time that is. */
export function Plot({ title, of, unit, times, curves }: {
  title: string; of: string; unit: string; times: number[]; curves: Curve[];
}) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shape = curves.map((c) => c.label + c.colour).join();
  const data = [times, ...curves.map((c) => c.values)] as uPlot.AlignedData;
  const newest = useRef(data);
  newest.current = data;
  useEffect(() => {
    const element = host.current!;
    let drawn = true;
    const draw = async () => {
      const { default: uPlot } = await import("uplot");
      if (!drawn) return;
      plot.current?.destroy();
      const text = colour("--muted");
      const grid = { stroke: colour("--border"), width: 1 };
      const width = element.clientWidth;
      const axis = { stroke: text, grid, ticks: grid, font: "12px system-ui" };
      plot.current = new uPlot({
        width, height: 170, legend: { show: false }, cursor: { show: false }, padding: [8, 34, 0, 0],
        scales: { y: { range: (_, __, max) => [0, Math.max(max * 1.1, 1)] } },
        axes: [{ ...axis, space: 90, size: 30, values: (_, ticks) => ticks.map((t) => formatTick(t * 1000)) }, { ...axis, size: 56, values: (_, ticks) => ticks.map((t) => formatCount(t)) }],
        series: [{}, ...curves.map((c) => ({ label: c.label, stroke: colour(c.colour), width: 2, points: { show: times.length === 1 } }))],
      }, newest.current, element);
    };
    const redraw = () => void draw();
    redraw();
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: 170 }));
    resized.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", redraw);
    const themed = new MutationObserver(redraw);
    themed.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => {
      drawn = false;
      resized.disconnect(); themed.disconnect(); dark.removeEventListener("change", redraw);
      plot.current?.destroy(); plot.current = null;
    };
  }, [shape]);
  useEffect(() => { plot.current?.setData(data); });
  const now = curves.map((c) => ({ ...c, last: c.values.at(-1) ?? null }));
  const said = now.map((c) => `${c.label} ${c.last === null ? "unknown" : formatCount(c.last)}`).join(", ");
  return (
    <figure class="plot">
      <figcaption>
        <b>{title}</b> <span class="muted">{unit}</span>
        <ul>{now.map((c) => (
          <li key={c.label}><span class="swatch" style={{ background: `var(${c.colour})` }} />{c.label}{" "}
            <b>{c.last === null ? "–" : formatCount(c.last)}</b></li>
        ))}</ul>
      </figcaption>
      <div ref={host} role="img" aria-label={`${title} of ${of}, ${unit}; now ${said}`} />
    </figure>
  );
}
