import type { Context } from "./context.js";
import { listen } from "./emitter.js";
import { ParlorError, problemError } from "./errors.js";
import { jitter, randomHex, sleep } from "./random.js";

const attemptTimeoutMs = 10_000;
const maxRetryAfterMs = 15_000;

/** A call of the HTTP interface. */
export interface HttpCall {
  /** By default POST with a body, GET without. */
  method?: string;
  body?: unknown;
  query?: object;
  /** The Idempotency-Key of a POST; "" sends none. By default a new one for each call. */
  idempotencyKey?: string;
  signal?: AbortSignal;
  /** The credential; "" sends none. By default the session's. */
  bearer?: string;
  /** How often it is tried again. */
  retries?: number;
}

/** Reports whether the browser says that there is no network. */
export const isOffline = () => globalThis.navigator?.onLine === false;

/** Returns what follows the path of an address. A member that is undefined or null is left out. */
export const queryString = (query?: object): string =>
  (query ? `?${new URLSearchParams(Object.entries(query).filter(([, value]) => value != null))}` : "");

/**
 * Returns the function that calls the HTTP interface. A call that may succeed later is repeated with
 * the same Idempotency-Key, so that it happens once. A token that was refused is renewed once.
 */
export function createHttp(c: Context) {
  async function attempt(path: string, method: string, call: HttpCall, headers: Record<string, string>) {
    const controller = new AbortController();
    const { signal } = controller;
    const timer = setTimeout(() => controller.abort(), attemptTimeoutMs);
    try {
      const body = JSON.stringify(call.body);
      if (body) headers["Content-Type"] = "application/json";
      const address = c.base + "/api/v1/" + path + queryString(call.query);
      const request = { method, headers, body, signal, credentials: "omit" } as const;
      const response = await (c.options.fetch || fetch)(address, request);
      const text = await response.text();
      let value: any;
      try {
        value = JSON.parse(text);
      } catch {} // nothing, or a page of something between us and the service
      c.syncClock(Date.parse(response.headers.get("Date")!));
      if (response.ok) return value;
      const { status } = response;
      const problem = value?.code ? value : { code: "internal", status, retryable: status > 428 };
      throw problemError(c.base, problem, response.headers.get("Retry-After"));
    } catch (e) {
      throw e instanceof ParlorError ? e : signal.aborted ? new ParlorError("timeout") : new ParlorError("offline");
    } finally {
      clearTimeout(timer);
    }
  }

  async function repeat(path: string, call: HttpCall): Promise<any> {
    const headers: Record<string, string> = {};
    const { method = call.body ? "POST" : "GET", idempotencyKey = method === "POST" ? randomHex(16) : "" } = call;
    const isOwn = call.bearer === undefined; // the session's credential
    if (idempotencyKey) headers["Idempotency-Key"] = idempotencyKey;
    for (let n = 0, renewed = false; ;) {
      if (c.state === "closed" && isOwn) throw new ParlorError("closed");
      if (call.signal?.aborted) throw new ParlorError("aborted");
      let token = call.bearer;
      try {
        token ??= await c.session.freshToken();
        if (token) headers.Authorization = `Bearer ${token}`;
        return await attempt(path, method, call, headers);
      } catch (e: any) {
        if (e.status === 401 && isOwn && token && !renewed) {
          renewed = true;
          c.session.refuse(token);
          continue;
        }
        const wait = Math.max(e.retryAfterMs || 0, jitter(n));
        if (!e.retryable || n++ >= (call.retries ?? 3) || isOffline() || wait > maxRetryAfterMs) throw e;
        await sleep(wait);
      }
    }
  }

  return (path: string, call: HttpCall = {}): Promise<any> => {
    const isAborted = new Promise((_, reject) => listen(call.signal, "abort", () => reject(new ParlorError("aborted"))));
    return Promise.race([repeat(path, call), isAborted]);
  };
}
