/** The style of the panel. A constructed sheet has it, which a strict Content-Security-Policy allows. */
export const style = `
:host { --bg: light-dark(#fff, #14161c); --surface: light-dark(#f5f6f9, #1c1f27); --line: light-dark(#d9dce5, #353b49);
  --text: light-dark(#1b1f2a, #e6e8ef); --muted: light-dark(#545b6d, #a3abbd); --accent: light-dark(#4338ca, #a5b4fc);
  --good: light-dark(#146c43, #6ee7a8); --warn: light-dark(#8a4b00, #fbbf60); --bad: light-dark(#b42318, #fda29b);
  display: block; color: var(--text); font: 13px/1.45 system-ui, sans-serif; text-align: left; }
:host([floating]) { color-scheme: light dark; position: fixed; right: 8px; bottom: 8px; z-index: 2147483647; }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
button, select, input { background: var(--bg); border: 1px solid var(--muted); border-radius: 6px; color: inherit;
  font: inherit; min-height: 28px; padding: 2px 8px; }
button { cursor: pointer; }
button[aria-pressed=true] { background: var(--accent); color: var(--bg); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
pre, .path { font: 12px/1.45 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
section { background: var(--bg); border: 1px solid var(--line); border-radius: 10px;
  display: flex; flex-direction: column; }
:host([floating]) section { box-shadow: 0 4px 24px #0004; height: min(60vh, 520px); width: min(560px, 100vw - 16px); }
:host(:not([floating])) section { height: 36rem; max-height: 80vh; }
header, .tools { align-items: center; display: flex; flex-wrap: wrap; gap: 6px; padding: 6px 8px; }
header { background: var(--surface); border-radius: 10px 10px 0 0; }
.state { font-weight: 600; } .trip { margin-right: auto; }
.online { color: var(--good); } .connecting, .reconnecting { color: var(--warn); }
.offline, .closed { color: var(--bad); }
.open { border-radius: 99px; box-shadow: 0 2px 8px #0004; font-weight: 600; min-height: 32px; padding: 2px 12px; }
[role=tablist] { border-bottom: 1px solid var(--line); display: flex; padding: 0 8px; }
[role=tab] { background: none; border: 0; border-bottom: 2px solid transparent; border-radius: 0;
  flex: 1; padding: 4px; }
[role=tab][aria-selected=true] { border-color: var(--accent); color: var(--accent); font-weight: 600; }
[role=tabpanel] { flex: 1; overflow: auto; }
.tools input { flex: 1; min-width: 8em; }
ol { list-style: none; margin: 0; padding: 0; }
li { border-top: 1px solid var(--line); }
summary { cursor: pointer; display: flex; gap: 8px; padding: 4px 8px; }
summary .path { flex: 1; }
.kind { color: var(--muted); flex: none; width: 4.9em; }
time, .ms { color: var(--muted); flex: none; font-variant-numeric: tabular-nums; }
.good { color: var(--good); } .bad { color: var(--bad); }
.body { padding: 0 8px 8px; }
dl { display: grid; gap: 2px 12px; grid-template-columns: max-content 1fr; margin: 6px 0; }
dt { color: var(--muted); } dd { margin: 0; overflow-wrap: anywhere; }
pre { background: var(--surface); border-radius: 6px; margin: 4px 0 8px; max-height: 16em;
  overflow: auto; padding: 6px 8px; white-space: pre-wrap; }
.page { padding: 4px 12px 12px; } .page .tools { padding: 0; }
table { border-collapse: collapse; width: 100%; }
th, td { border-top: 1px solid var(--line); padding: 3px 8px 3px 0; text-align: left; overflow-wrap: anywhere; }
th, label, .note { color: var(--muted); font-weight: 400; }
label { display: block; margin: 8px 0; } select { color: var(--text); margin-left: 8px; }
h2 { font-size: 13px; margin: 12px 0 4px; }
textarea { background: var(--surface); border: 0; color: inherit; font: 12px monospace; height: 12em; margin: 8px; }
`;
