// The parts that all screens are made of.
import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Call, call, calls, curlOf, type Method, newKey, Problem } from "./api";
import { formatClock, formatTime, formatUnits, zone } from "./format";
import type { Page, Token } from "./types";

// Reading.

export interface Read<T> {
  value: T | null;
  problem: Problem | null;
  reload: () => void;
}

/** Reads a path of the API, again every some milliseconds when `every` is given. No path reads nothing. */
export function useRead<T>(path: string | null, every = 0): Read<T> {
  const [state, setState] = useState<{ path: string | null; value: T | null; problem: Problem | null }>(
    { path: null, value: null, problem: null });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (path === null) return;
    const stop = new AbortController();
    let timer = 0;
    const read = async () => {
      try {
        const value = await call<T>("GET", path, undefined, undefined, stop.signal);
        if (!stop.signal.aborted) setState({ path, value, problem: null });
      } catch (cause) {
        if (stop.signal.aborted || !(cause instanceof Problem)) return;
        setState((last) => ({ path, value: last.path === path ? last.value : null, problem: cause }));
      }
      if (every > 0 && !stop.signal.aborted) timer = window.setTimeout(() => (document.hidden ? wait() : read()), every);
    };
    const wait = () => { timer = window.setTimeout(() => (document.hidden ? wait() : read()), every); };
    void read();
    return () => { stop.abort(); clearTimeout(timer); };
  }, [path, every, turn]);
  const current = state.path === path;
  return {
    value: current ? state.value : null, problem: current ? state.problem : null, reload: () => setTurn((n) => n + 1),
  };
}

/** Reads a list page by page: `more` adds the next one. */
export function usePages<T>(path: string | null): Read<T[]> & { more: (() => void) | null } {
  const first = useRead<Page<T>>(path);
  const [rest, setRest] = useState<{ of: Page<T>; items: T[]; next: string | null } | null>(null);
  const added = rest && rest.of === first.value ? rest : null;
  const next = added ? added.next : first.value?.nextCursor ?? null;
  const more = async () => {
    const page = await call<Page<T>>("GET", path + (path!.includes("?") ? "&" : "?") + "cursor=" + encodeURIComponent(next!));
    setRest({ of: first.value!, items: [...(added?.items ?? []), ...page.items], next: page.nextCursor });
  };
  return {
    value: first.value ? [...first.value.items, ...(added?.items ?? [])] : null,
    problem: first.problem, reload: first.reload, more: next ? () => void more().catch(() => undefined) : null,
  };
}

/** Returns the decimals of each token, which amounts of minor units need. */
export function useTokens(): { list: Token[]; decimals: (code: string) => number } {
  const list = useRead<Page<Token>>("/api/v1/admin/tokens").value?.items ?? [];
  return { list, decimals: (code) => Number(list.find((t) => t.tokenId === code)?.metadata.decimals ?? 0) };
}

// Showing.

/** What a screen reader says, and the last line of the page: the outcome of an act. */
export const outcome = signal("");
/** Whether what was done has shown a fault, such as a test that failed. */
export const isBadOutcome = signal(false);

/** A time with its zone; with `clock` without the day. */
export function Time({ at, clock }: { at: string | null | undefined; clock?: boolean }) {
  return at ? <time dateTime={at} title={at}>{clock ? formatClock(at) : formatTime(at)}</time> : <span class="muted">–</span>;
}

export function Amount({ units, decimals, code, signed }: {
  units: string | undefined; decimals: number; code?: string; signed?: boolean;
}) {
  if (units === undefined) return <span class="muted">–</span>;
  const plus = signed && !units.startsWith("-") && units !== "0" ? "+" : "";
  return <span class="amount">{plus}{formatUnits(units, decimals)}{code ? <span class="unit"> {code}</span> : null}</span>;
}

const tones: Record<string, string> = {
  STARTED: "good", FINISHED: "quiet", CANCELLED: "bad", DISPUTED: "warn", CREATED: "new",
};

export function Badge({ text, tone }: { text: string; tone?: string }) {
  return <span class={"badge " + (tone ?? tones[text] ?? "quiet")}>{text}</span>;
}

/** Says what is wrong, and offers another try. */
export function ProblemNote({ problem, retry }: { problem: Problem | null; retry?: () => void }) {
  if (!problem) return null;
  return (
    <p class="notice bad" role="alert">
      <strong>{problem.code}</strong>: {problem.message}
      {problem.fields.map((f) => <span key={f.field}> <code>{f.field}</code> {f.message}.</span>)}
      {retry ? <> <button type="button" onClick={retry}>Try again</button></> : null}
    </p>
  );
}

export interface Column<T> { head: string; cell: (item: T) => ComponentChildren; num?: boolean }

/** A table whose first column names the row. Where the screen is narrow each row is a card. */
export function Table<T>({ label, columns, items, id, empty }: {
  label: string; columns: Column<T>[]; items: T[] | null; id: (item: T) => string | number; empty: string;
}) {
  if (!items) return <p class="muted" role="status">Reading…</p>;
  if (items.length === 0) return <p class="empty">{empty}</p>;
  return (
    <div class="scroll" role="region" aria-label={label} tabIndex={0}>
      <table>
        <caption class="visually-hidden">{label}</caption>
        <thead><tr>{columns.map((c) => <th key={c.head} scope="col" class={c.num ? "num" : ""}>{c.head}</th>)}</tr></thead>
        <tbody>
          {items.map((item) => (
            <tr key={id(item)}>
              {columns.map((c, i) => i === 0
                ? <th key={c.head} scope="row" class={c.num ? "num" : ""} data-head={c.head}>{c.cell(item)}</th>
                : <td key={c.head} class={c.num ? "num" : ""} data-head={c.head}>{c.cell(item)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Reads a screen again. */
export const Refresh = ({ reload }: { reload: () => void }) => <button type="button" onClick={reload}>Refresh</button>;

export const More = ({ more }: { more: (() => void) | null }) =>
  more ? <p><button type="button" onClick={more}>Show more</button></p> : null;

export function Facts({ rows }: { rows: [string, ComponentChildren][] }) {
  return <dl class="facts">{rows.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}

export function Section({ title, actions, children }: {
  title: string; actions?: ComponentChildren; children: ComponentChildren;
}) {
  return (
    <section>
      <div class="head"><h2>{title}</h2><div class="actions">{actions}</div></div>
      {children}
    </section>
  );
}

// Acting.

export interface Field {
  name: string;
  label: string;
  type?: "text" | "number" | "select" | "textarea" | "datetime-local";
  options?: { value: string; text: string }[];
  value?: string;
  required?: boolean;
  hint?: string;
}

/** An act that is confirmed in a dialog before it is made. */
export interface Act {
  title: string;
  says?: ComponentChildren; // what it does
  button: string;
  danger?: boolean;
  fields?: Field[];
  method: Method;
  path: string;
  body?: (values: Record<string, string>) => unknown;
  done: string; // what is said after it
  then?: (answer: unknown) => void;
}

/** The act whose dialog is open. */
const open = signal<{ act: Act; key: string } | null>(null);

/** Reports whether a try has changed nothing for certain, so that the next one is a new intent. */
function wasRefused(problem: Problem): boolean {
  return problem.status >= 400 && problem.status < 500 && !["request_in_progress", "idempotency_key_reused", "rate_limited"].includes(problem.code);
}

/** Opens the dialog of an act. A try whose outcome is unknown is made again with the same Idempotency-Key. */
export function confirmAct(act: Act): void {
  open.value = { act, key: newKey() };
}

export function ActButton({ act, label, primary }: { act: Act; label?: string; primary?: boolean }) {
  return (
    <button type="button" class={act.danger ? "danger" : primary ? "primary" : ""} onClick={() => confirmAct(act)}>
      {label ?? act.title}
    </button>
  );
}

export function ActDialog() {
  const current = open.value;
  return current ? <OpenDialog key={current.key} act={current.act} idempotencyKey={current.key} /> : null;
}

function OpenDialog({ act, idempotencyKey }: { act: Act; idempotencyKey: string }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const initial = Object.fromEntries((act.fields ?? []).map((f) => [f.name, f.value ?? f.options?.[0]?.value ?? ""]));
  const [values, setValues] = useState<Record<string, string>>(initial);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const intent = useRef(idempotencyKey);
  useEffect(() => {
    const opener = document.activeElement;
    dialog.current!.showModal();
    return () => { if (opener instanceof HTMLElement && opener.isConnected) opener.focus(); };
  }, []);
  const close = () => { dialog.current?.close(); open.value = null; };
  let body: unknown;
  let unready: string | null = null;
  try {
    body = act.body?.(values);
  } catch (cause) {
    unready = cause instanceof Error ? cause.message : String(cause);
  }
  const submit = async (event: Event) => {
    event.preventDefault();
    if (unready) { setProblem(new Problem(0, "invalid_request", unready)); return; }
    setBusy(true);
    setProblem(null);
    try {
      const answer = await call(act.method, act.path, body, act.method === "POST" ? intent.current : undefined);
      outcome.value = act.done;
      isBadOutcome.value = false;
      close();
      act.then?.(answer);
    } catch (cause) {
      setBusy(false);
      if (cause instanceof Problem && wasRefused(cause)) intent.current = newKey();
      setProblem(cause instanceof Problem ? cause : new Problem(0, "failed", String(cause)));
    }
  };
  return (
    <dialog ref={dialog} aria-labelledby="dialog-title" onClose={() => { open.value = null; }}>
      <form onSubmit={(event) => void submit(event)}>
        <h2 id="dialog-title">{act.title}</h2>
        {act.says ? <p>{act.says}</p> : null}
        {(act.fields ?? []).map((field) => (
          <FieldInput key={field.name} field={field} value={values[field.name]!}
            onChange={(value) => setValues({ ...values, [field.name]: value })} />
        ))}
        <details class="behind"><summary>The API call</summary>
          <CallCode call={{ method: act.method, path: act.path, body }} /></details>
        <ProblemNote problem={problem} />
        <div class="actions end">
          <button type="button" onClick={close}>{act.title.startsWith("Cancel") ? "Keep as it is" : "Cancel"}</button>
          <button type="submit" class={act.danger ? "danger solid" : "primary"} disabled={busy}>{act.button}</button>
        </div>
      </form>
    </dialog>
  );
}

function FieldInput({ field, value, onChange }: { field: Field; value: string; onChange: (value: string) => void }) {
  const id = `field-${field.name}`;
  const says = field.type === "datetime-local" ? [field.hint, `In the zone of this browser, ${zone}`].filter(Boolean).join(". ") : field.hint;
  const hint = says ? `${id}-hint` : undefined;
  const common = { id, name: field.name, required: field.required, "aria-describedby": hint, value };
  const changed = (event: { currentTarget: { value: string } }) => onChange(event.currentTarget.value);
  let input: JSX.Element;
  if (field.type === "select") {
    input = (
      <select {...common} onChange={changed}>
        {field.options!.map((o) => <option key={o.value} value={o.value}>{o.text}</option>)}
      </select>
    );
  } else if (field.type === "textarea") {
    input = <textarea {...common} rows={8} spellcheck={false} onInput={changed} />;
  } else {
    input = field.type === "datetime-local" ? <input {...common} type="datetime-local" onInput={changed} />
      : <input {...common} type="text" inputMode={field.type === "number" ? "decimal" : "text"} autoComplete="off" onInput={changed} />;
  }
  return (
    <p class="field">
      <label for={id}>{field.label}</label>
      {input}
      {says ? <small id={hint} class="muted">{says}</small> : null}
    </p>
  );
}

// The API behind it.

const CallCode = ({ call: made }: { call: Pick<Call, "method" | "path" | "body"> }) =>
  <CopiedCode text={curlOf(made)} label={`${made.method} ${made.path} as a command`} />;

/** Text to paste elsewhere. */
export function CopiedCode({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text).then(() => setCopied(true), () => undefined);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <div class="call">
      <pre tabIndex={0} aria-label={label}><code>{text}</code></pre>
      <button type="button" onClick={() => void copy()}>{copied ? "Copied" : "Copy"}</button>
    </div>
  );
}

/** The calls that the shown screen has made. */
export function Behind() {
  const heads = [...new Set(calls.value.map((made) => `${made.method} ${made.path.split("?")[0]}`))];
  return (
    <details class="behind">
      <summary>
        API calls behind this screen:{" "}
        {heads.slice(0, 2).map((head, i) => <span key={head}>{i > 0 ? ", " : ""}<code>{head}</code></span>)}
        {heads.length > 2 ? ` and ${heads.length - 2} more` : ""}
      </summary>
      <p class="muted">With <code>export URL=… ADMIN_KEY=…</code> the commands do the same.</p>
      <ul>
        {calls.value.map((made) => (
          <li key={made.method + made.path}>
            <p><code><b>{made.method}</b> {made.path}</code> <Badge text={String(made.status || "no answer")}
              tone={made.status >= 200 && made.status < 300 ? "good" : "bad"} /> <span class="muted">{made.ms} ms</span></p>
            <CallCode call={made} />
          </li>
        ))}
      </ul>
    </details>
  );
}
