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

  constructor(code: Code, detail?: string, o: Partial<ParlorError> = {}) {
    const docs = o.docs || `/docs/errors/${code}`;
    detail ||= `see ${docs}`;
    super(`${code}: ${detail}`);
    const retryable = /^(offline|timeout|queue_full)$/.test(code);
    Object.assign(this, { name: "ParlorError", status: 0, retryable, data: {}, ...o, code, detail, docs });
  }
}

/** Returns the error that a problem document (RFC 9457) describes. */
export function problemError(base: string, problem: any, retryAfter?: string | null): ParlorError {
  const { type, title, status, detail, instance, code, requestId, retryable, ...data } = problem;
  const retryAfterMs = +retryAfter! * 1000 || undefined;
  const docs = base + (type || `/docs/errors/${code}`);
  return new ParlorError(code, detail || title, { status, requestId, retryable, retryAfterMs, docs, data });
}

/** Reports whether the outcome of a failed call is certain: the service refused it. */
export const isRefusal = (e: any): boolean => e instanceof ParlorError && e.status >= 400 && !e.retryable;

/** Throws a TypeError that names the fix, unless a call is right. */
export function need(isRight: unknown, fix: string): asserts isRight {
  if (!isRight) throw new TypeError(fix);
}

/** Limits the size of a text that the service would refuse. Returns its size in bytes. */
export function limitSize(text: string, bytes: number): number {
  const size = new TextEncoder().encode(text).length;
  if (size > bytes) throw new ParlorError("payload_too_large", `at most ${bytes} bytes`);
  return size;
}
