import { aborted, closed, queueFull } from "./errors.js";
import type { ListenOptions } from "./types.js";

type Listener = (event: any) => unknown;

/** Calls listeners by the name of an event. One that throws is reported and stops nobody else. */
export interface Emitter {
  on(event: string, fn: Listener, o?: ListenOptions): () => void;
  once(event: string, o?: ListenOptions): Promise<any>;
  events(o?: ListenOptions): AsyncIterable<any>;
  emit(event: string, value: any): boolean;
  /** Ends what waits for events, with the error `closed`. */
  end(): void;
}

const all = "*"; // of events(): every event but change
const maxUnread = 1000;

export function createEmitter(report: (e: unknown) => void): Emitter {
  const listeners = new Map<string, Set<Listener>>();
  const endings = new Set<() => void>();

  function on(event: string, fn: Listener, o: ListenOptions = {}) {
    if (typeof fn !== "function") throw new TypeError(`on("${event}", …) needs a function`);
    const own: Listener = (value) => fn(value); // so that the same function can be added twice
    const off = () => {
      listeners.get(event)?.delete(own);
      o.signal?.removeEventListener("abort", off);
    };
    if (o.signal?.aborted) return off;
    if (!listeners.has(event)) listeners.set(event, new Set());
    listeners.get(event)!.add(own);
    o.signal?.addEventListener("abort", off);
    return off;
  }

  function call(event: string, value: any) {
    const set = listeners.get(event);
    for (const fn of [...(set || [])]) {
      if (!set!.has(fn)) continue; // another listener removed it
      try {
        const result: any = fn(value);
        if (result?.then) result.then(undefined, report);
      } catch (e) {
        report(e);
      }
    }
    return !!set?.size;
  }

  /** Calls `fn` when the client closes or the signal aborts. Returns the function that forgets it. */
  function onEnd(o: ListenOptions, fn: (e: Error) => void) {
    const byClose = () => fn(closed());
    const bySignal = () => fn(aborted());
    endings.add(byClose);
    o.signal?.addEventListener("abort", bySignal);
    if (o.signal?.aborted) bySignal();
    return () => {
      endings.delete(byClose);
      o.signal?.removeEventListener("abort", bySignal);
    };
  }

  return {
    on,
    once: (event, o = {}) => new Promise((resolve, reject) => {
      const off = on(event, (value) => {
        forget();
        off();
        resolve(value);
      });
      const forget = onEnd(o, (e) => {
        off();
        reject(e);
      });
    }),
    events(o = {}) {
      const unread: any[] = [];
      let wake = () => {};
      let end: any;
      const finish = (e: unknown) => {
        end = e;
        wake();
      };
      const off = on(all, (value) => {
        if (unread.push(value) > maxUnread) finish(queueFull(`${maxUnread} events wait to be read`));
        wake();
      });
      const forget = onEnd(o, finish);
      return (async function* () {
        try {
          for (;;) {
            while (unread.length) yield unread.shift();
            if (end?.code === "queue_full") throw end;
            if (end) return;
            await new Promise<void>((resolve) => { wake = resolve; });
          }
        } finally {
          off();
          forget();
        }
      })();
    },
    emit(event, value) {
      const heard = call(event, value);
      if (event !== "change") call(all, value);
      return heard;
    },
    end() {
      for (const fn of [...endings]) fn();
      listeners.clear();
    },
  };
}
