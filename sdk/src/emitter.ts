import { need, ParlorError } from "./errors.js";
import type { ListenOptions } from "./types.js";

type Listener = (event: any) => unknown;

/** Calls listeners by the name of an event. One that throws is reported and stops nobody else. */
export interface Emitter {
  on(event: string, fn: Listener, o?: ListenOptions): () => void;
  once(event: string, o?: ListenOptions): Promise<any>;
  events(o?: ListenOptions): AsyncIterable<any>;
  /** Returns whether anybody listened. */
  emit(event: string, value: any): boolean;
  /** Ends what waits for events, with the error `closed`. */
  end(): void;
}

const maxUnread = 1000;

/** Listens to an event of the browser. Returns the function that stops it. */
export function listen(target: any, type: string, fn: () => void): () => void {
  target?.addEventListener?.(type, fn);
  return () => target?.removeEventListener?.(type, fn);
}

export function createEmitter(report: (e: unknown) => void): Emitter {
  // A listener of "" hears every event but change.
  const listeners = new Set<{ heard: string; fn: Listener; end(e: unknown): void }>();

  /** Adds a listener. `onEnd` is called when it can hear no more, by the signal or the client. */
  function add(event: string, fn: Listener, { signal }: ListenOptions = {}, onEnd?: (e: unknown) => void) {
    need(typeof fn === "function", "needs a function");
    const listener = {
      heard: event, fn,
      end(e: unknown) {
        off();
        onEnd?.(e);
      },
    };
    const abort = () => listener.end(new ParlorError("aborted"));
    const unlisten = listen(signal, "abort", abort);
    const off = () => {
      listeners.delete(listener);
      unlisten();
    };
    listeners.add(listener);
    if (signal?.aborted) abort();
    return off;
  }

  return {
    on: add,
    once: (event, o) => new Promise((resolve, reject) => {
      const off = add(event, (value) => resolve((off(), value)), o, reject);
    }),
    events(o) {
      const unread: any[] = [];
      let wake = () => {};
      let end: any;
      const finish = (e: unknown) => {
        end ||= e;
        wake();
      };
      const off = add("", (value) => {
        if (unread.push(value) > maxUnread) finish(new ParlorError("queue_full"));
        wake();
      }, o, finish);
      return (async function* () {
        try {
          for (;;) {
            while (unread.length) yield unread.shift();
            if (end?.retryable) throw end;
            if (end) return;
            await new Promise<void>((resolve) => { wake = resolve; });
          }
        } finally {
          off();
        }
      })();
    },
    emit(event, value) {
      let isHeard = false;
      for (const listener of [...listeners]) {
        const isNamed = listener.heard === event;
        if (!listeners.has(listener) || !(isNamed || (!listener.heard && event !== "change"))) continue;
        isHeard ||= isNamed;
        try {
          (listener.fn(value) as any)?.then?.(undefined, report);
        } catch (e) {
          report(e);
        }
      }
      return isHeard;
    },
    end() {
      listeners.forEach((listener) => listener.end(new ParlorError("closed")));
    },
  };
}
