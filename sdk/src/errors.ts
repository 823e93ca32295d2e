import type { Code } from "./generated/codes.js";

/** An error of the service or of the way to it. Every promise of the SDK rejects with one. */
export class ParlorError extends Error {
  /** What happened; one of a closed list. */
  declare readonly code: Code;
  /** The HTTP status, 0 for what the SDK reports itself. */
  declare readonly status: number;
  /** A sentence for developers. */
  declare readonly detail: string;
  /** Names the request in the logs of the service. */
  declare readonly requestId?: string;
  /** Whether the same call may succeed later. */
  declare readonly retryable: boolean;
  /** When it may be tried again. */
  declare readonly retryAfterMs?: number;
  /** The address of the page about the code. */
  declare readonly docs: string;
  /** What else the service said, such as `available` and `required`. */
  declare readonly data: any;

  constructor(code: Code, detail: string, o: Partial<ParlorError> = {}) {
    super(`${code}: ${detail}`);
    const name = "ParlorError";
    const docs = `/docs/errors/${code}`;
    Object.assign(this, { status: 0, retryable: false, docs, data: {} }, o, { name, code, detail });
  }
}

/** Returns the error that a problem document (RFC 9457) describes. */
export function problemError(base: string, problem: any, retryAfter?: string | null): ParlorError {
  const { type, title, status, detail, instance, code, requestId, retryable, ...data } = problem;
  const o: any = { status, requestId, retryable, docs: base + (type || `/docs/errors/${code}`), data };
  if (retryAfter) o.retryAfterMs = parseFloat(retryAfter) * 1000;
  return new ParlorError(code, detail || title, o);
}

/** Reports whether the outcome of a failed call is certain: the service refused it. */
export const isRefusal = (e: any): boolean => e instanceof ParlorError && e.status >= 400 && !e.retryable;

const own = (code: Code, detail: string, retryable = false) => new ParlorError(code, detail, { retryable });
export const offline = () => own("offline", "the service cannot be reached", true);
export const timeout = () => own("timeout", "no answer in time", true);
export const closed = () => own("closed", "the client was closed");
export const aborted = () => own("aborted", "by the signal of the call");
export const queueFull = () => own("queue_full", "too much waits already", true);
