import type { Code } from "./generated/codes.js";

/** An error of the service or of the way to it. Every promise of the SDK rejects with one. */
export class ParlorError extends Error {
  /** What happened; one of a closed list. */
  readonly code: Code;
  /** The HTTP status, 0 for what the SDK reports itself. */
  readonly status: number;
  /** A sentence for developers. */
  readonly detail: string;
  /** Names the request in the logs of the service. */
  readonly requestId?: string;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** When it may be tried again. */
  readonly retryAfterMs?: number;
  /** The address of the page about the code. */
  readonly docs: string;
  /** What else the service said, such as `available` and `required`. */
  readonly data: any;

  constructor(code: Code, detail: string, o: Partial<ParlorError> = {}) {
    super(`${code}: ${detail}`);
    this.name = "ParlorError";
    this.code = code;
    this.detail = detail;
    this.status = o.status || 0;
    this.requestId = o.requestId;
    this.retryable = !!o.retryable;
    this.retryAfterMs = o.retryAfterMs;
    this.docs = o.docs || "";
    this.data = o.data || {};
  }
}

/** Returns the error that a problem document (RFC 9457) describes. */
export function problemError(base: string, problem: any, retryAfter?: string | null): ParlorError {
  const { type, title, status, detail, instance, code, requestId, retryable, ...data } = problem;
  const seconds = parseFloat(retryAfter || "");
  const retryAfterMs = seconds >= 0 ? seconds * 1000 : undefined;
  return new ParlorError(code, detail || title, {
    status, requestId, retryable, retryAfterMs, docs: base + (type || `/docs/errors/${code}`), data,
  });
}

/** Reports whether the outcome of a failed call is certain: the service refused it. */
export const isRefusal = (e: any): boolean => e instanceof ParlorError && e.status >= 400 && !e.retryable;

export const offline = () => new ParlorError("offline", "the service cannot be reached", { retryable: true });
export const timeout = () => new ParlorError("timeout", "no answer in time", { retryable: true });
export const closed = () => new ParlorError("closed", "the client was closed");
export const aborted = () => new ParlorError("aborted", "the signal ended the call");
export const queueFull = (detail: string) => new ParlorError("queue_full", detail, { retryable: true });
