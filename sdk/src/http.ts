import type { Context } from "./context.js";
import { listen } from "./emitter.js";
import { aborted, closed, offline, ParlorError, problemError, timeout } from "./errors.js";
import { jitter, randomHex, sleep } from "./random.js";

const attemptTimeoutMs = 10_000;
const maxRetryAfterMs = 15_000;

/** A call of the HTTP interface. */
export interface Call {
  body?: unknown;
  query?: object;
  /** The Idempotency-Key of a POST; "" sends none. By default a new one for each call. */
  key?: string;
  signal?: AbortSignal;
  /** The credential; "" sends none. By default the session's. */
  bearer?: string;
  /** How often it is tried again. */
  retries?: number;
}

/** Reports whether the browser says that there is no network. */
export const isOffline = () => globalThis.navigator?.onLine === false;

function queryString(query: object = {}): string {
  const given = Object.entries(query).filter(([, value]) => value != null);
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

/**
 * Returns the function that calls the HTTP interface. A call that may succeed later is repeated with
 * the same Idempotency-Key, so that it happens once. A token that was refused is renewed once.
 */
export function createHttp(c: Context) {
  async function attempt(method: string, path: string, call: Call, headers: Record<string, string>) {
    const controller = new AbortController();
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      controller.abort();
    }, attemptTimeoutMs);
    try {
      const body = call.body ? JSON.stringify(call.body) : undefined;
      if (body) headers["Content-Type"] = "application/json";
      const response = await (c.options.fetch || fetch)(c.base + "/api/v1/" + path + queryString(call.query), {
        method, headers, body, signal: controller.signal, credentials: "omit",
      });
      const text = await response.text();
      let value: any;
      try {
        value = text ? JSON.parse(text) : undefined;
      } catch {} // a page of something between us and the service
      c.syncClock(Date.parse(response.headers.get("Date") || ""));
      if (response.ok) return value;
      const { status } = response;
      const other = { code: "internal", status, title: `status ${status}`, retryable: status > 428 };
      const problem = value?.code ? value : other;
      throw problemError(c.base, problem, response.headers.get("Retry-After"));
    } catch (e) {
      if (e instanceof ParlorError) throw e;
      throw late ? timeout() : offline();
    } finally {
      clearTimeout(timer);
    }
  }

  async function repeat(method: string, path: string, call: Call): Promise<any> {
    const headers: Record<string, string> = {};
    const key = call.key ?? (method === "POST" ? randomHex(16) : "");
    if (key) headers["Idempotency-Key"] = key;
    for (let n = 0, renewed = false; ;) {
      if (c.state === "closed" && call.bearer === undefined) throw closed();
      if (call.signal?.aborted) throw aborted();
      let token = call.bearer;
      try {
        token ??= await c.session.freshToken();
        if (token) headers.Authorization = `Bearer ${token}`;
        return await attempt(method, path, call, headers);
      } catch (e: any) {
        if (e.status === 401 && call.bearer === undefined && token && !renewed) {
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

  return (method: string, path: string, call: Call = {}): Promise<any> => {
    const work = repeat(method, path, call);
    const { signal } = call;
    if (!signal) return work;
    return Promise.race([work, new Promise((_, reject) => listen(signal, "abort", () => reject(aborted())))]);
  };
}
