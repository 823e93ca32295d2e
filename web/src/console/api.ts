// Calls the API below /console, where the session's cookie counts. Every call is remembered, so that
// a screen can show what is behind it.
import { signal } from "@preact/signals";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** A call that the shown screen has made. */
export interface Call {
  method: Method;
  path: string; // of the API, "/api/v1/admin/…"
  body?: unknown;
  status: number; // 0 while it runs, and when no answer came
  ms: number;
}

/** The calls of the shown screen, the newest of each method and path. */
export const calls = signal<Call[]>([]);

/** Whether there is a session; null until that is known. */
export const signedIn = signal<boolean | null>(null);

/** An answer that is not a success. The members are those of the problem. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly fields: { field: string; message: string }[] = [],
  ) {
    super(detail);
  }
}

/** Returns the headers of every call: pages of other origins cannot send the first one. */
function headersOf(body: unknown, key?: string): Record<string, string> {
  const headers: Record<string, string> = { "Parlor-Console": "1" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  return headers;
}

/** Returns the body of an answer, and throws a Problem for one that is no success. */
async function exchange<T>(method: Method, url: string, body?: unknown, key?: string, signal?: AbortSignal) {
  let response: Response;
  try {
    response = await fetch(url, {
      method, signal, headers: headersOf(body, key), body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin", cache: "no-store",
    });
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw new Problem(0, "offline", "The node does not answer.");
  }
  const text = await response.text();
  const isJSON = (response.headers.get("Content-Type") ?? "").includes("json");
  const value = isJSON && text ? JSON.parse(text) : undefined;
  if (!response.ok) {
    const problem = new Problem(response.status, value?.code ?? String(response.status),
      value?.detail ?? `The node returned ${response.status}.`, value?.errors);
    if (response.status === 401) signedIn.value = false;
    throw problem;
  }
  return { status: response.status, value: value as T };
}

function remember(call: Call): void {
  const others = calls.value.filter((c) => c.method !== call.method || c.path !== call.path);
  calls.value = [...others, call].slice(-30);
}

/** Calls the API. A POST needs the key of its intent, made by newKey. */
export async function call<T>(
  method: Method, path: string, body?: unknown, key?: string, signal?: AbortSignal,
): Promise<T> {
  const started = performance.now();
  const ms = () => Math.round(performance.now() - started);
  try {
    const { status, value } = await exchange<T>(method, "/console" + path, body, key, signal);
    remember({ method, path, body, status, ms: ms() });
    return value;
  } catch (cause) {
    if (cause instanceof Problem) remember({ method, path, body, status: cause.status, ms: ms() });
    throw cause;
  }
}

/** Reads what something is called. The call is not listed: no screen is made of it. */
export const lookUp = async <T>(path: string): Promise<T> => (await exchange<T>("GET", "/console" + path)).value;

/** Returns a random Idempotency-Key for one intent. It is the same when the intent is tried again. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return "console-" + Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

/** Returns the command that makes a call outside of the console. */
export function curlOf({ method, path, body }: Pick<Call, "method" | "path" | "body">): string {
  const parts = [`curl -s "$URL${path}"`, `-H "Authorization: Bearer $ADMIN_KEY"`];
  if (method !== "GET") parts.splice(1, 0, `-X ${method}`);
  if (method === "POST") parts.push(`-H "Idempotency-Key: $(uuidgen)"`);
  if (body !== undefined) {
    parts.push(`-H 'Content-Type: application/json'`, `-d '${JSON.stringify(body).replaceAll("'", `'\\''`)}'`);
  }
  return parts.join(" \\\n  ");
}

export interface Session { operator: number; expiresAt: string }

/** The session of this browser. */
export const session = signal<Session | null>(null);

/** Finds out whether there is a session, after exchanging the link in the address, if there is one. */
export async function startSession(): Promise<string | null> {
  const link = /^#link=(.+)$/.exec(location.hash)?.[1];
  let fault: string | null = null;
  try {
    if (link) {
      history.replaceState(null, "", "/console#/rooms"); // the secret is in no history
      session.value = (await exchange<Session>("POST", "/console/session", { link: decodeURIComponent(link) })).value;
      signedIn.value = true;
      return null;
    }
  } catch (cause) {
    if (cause instanceof Problem) fault = cause.message;
  }
  try { // of this browser, perhaps by the same link a while ago
    session.value = (await exchange<Session>("GET", "/console/session")).value;
    signedIn.value = true;
    return null;
  } catch {
    signedIn.value = false;
    return fault;
  }
}

export async function signOut(): Promise<void> {
  await exchange("DELETE", "/console/session").catch(() => undefined);
  session.value = null;
  signedIn.value = false;
}

/** Returns a path with its query; what is empty is left out. */
export function withQuery(path: string, query: Record<string, string | number | null | undefined>): string {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return given.length === 0 ? path : path + "?" + new URLSearchParams(given.map(([k, v]) => [k, String(v)]));
}
