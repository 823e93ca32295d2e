import type { Context } from "./context.js";
import { closed, ParlorError, queueFull } from "./errors.js";
import { jitter, randomHex, sleep } from "./random.js";
import { createSocket } from "./socket.js";
import type { Progress, Saved } from "./types.js";

const coalesceMs = 500;
const idleMs = 10_000; // after which the socket of saves is closed
const maxSlots = 16;
const maxStateBytes = 256 << 10;
const maxConflicts = 5; // merges of one save

/** A state that is to be saved, and who waits for it. */
interface Save {
  state: any;
  merge?: (mine: any, theirs: any) => any;
  callers: { resolve(saved: Saved): void; reject(e: unknown): void }[];
}

/** A slot with something to save. All of it is stored until the outcome is known. */
interface Slot {
  /** What is on its way. Repeating a message with the same id is one save. */
  attempt?: Save & { id: string; version: number; theirs?: { state: object; version: number } };
  /** The newest state that is not on its way yet. */
  next?: Save;
  timer?: any;
  running?: boolean;
}

export function createProgress(c: Context) {
  const prefix = `${c.prefix}:save:`;
  const slots = new Map<string, Slot>();
  const versions = new Map<string, number>(); // last read, by slot
  let idleTimer: any;
  let requests = 0;

  const nothing = () => {};
  // The service has saves on a socket of their own. It is open while there is something to do.
  const socket = createSocket(c, "game-data/save", { onUp: nothing, onDown: nothing, onEvent: nothing });

  async function ask(type: string, data: object, id?: string) {
    clearTimeout(idleTimer);
    requests++;
    try {
      const answer = await socket.ask(type, data, id);
      if (answer.version) versions.set(answer.slot, answer.version);
      return answer;
    } finally {
      if (!--requests) idleTimer = setTimeout(() => slots.size || socket.rest(), idleMs);
    }
  }

  /** Stores what is not known to be saved yet, for the next page. */
  async function persist(name: string, { attempt, next }: Slot) {
    const storage = await c.shelf;
    if (!attempt && !next) return storage.remove(prefix + name);
    const { id, state, version } = attempt || {};
    await storage.set(prefix + name, JSON.stringify({
      userId: c.user?.id, attempt: attempt && { id, state, version }, next: next?.state,
    }));
  }

  /** Sends what there is to save in a slot, one after the other, until the outcome is known. */
  async function run(name: string, slot: Slot) {
    clearTimeout(slot.timer);
    slot.timer = 0;
    if (slot.running) return persist(name, slot);
    slot.running = true;
    for (let conflicts = 0, failures = 0; slot.attempt || slot.next;) {
      if (!slot.attempt) {
        slot.attempt = { ...slot.next!, id: randomHex(16), version: versions.get(name) || 0 };
        slot.next = undefined;
        conflicts = 0;
      }
      let { attempt } = slot;
      const { callers, merge, theirs } = attempt;
      try {
        if (theirs) {
          const { version } = theirs;
          const state = await merge!(attempt.state, theirs.state);
          attempt = { ...attempt, id: randomHex(16), state, version, theirs: undefined };
          slot.attempt = attempt;
        }
        if (!c.user) await c.session.freshToken(); // known without a connection where a session is stored
        await persist(name, slot);
        const saved = await ask("save", { slot: name, state: attempt.state, version: attempt.version }, attempt.id);
        callers.forEach((caller) => caller.resolve(saved));
      } catch (e: any) {
        let error = e;
        if (e.retryable) {
          await sleep(e.retryAfterMs || jitter(failures++));
          continue;
        }
        const current = e.code === "version_conflict" && e.data.current;
        if (current && merge && conflicts++ < maxConflicts) {
          attempt.theirs = current;
          continue;
        }
        if (current) {
          const data = { mine: attempt.state, theirs: current.state, version: current.version };
          error = new ParlorError(e.code, e.detail, { ...e, data });
        }
        callers.forEach((caller) => caller.reject(error));
        if (e.code === "closed") { // it stays stored
          slot.next?.callers.forEach((caller) => caller.reject(e));
          return;
        }
        if (!callers.length) c.reportError(error);
      }
      slot.attempt = undefined;
    }
    slots.delete(name);
    await persist(name, slot);
  }

  function check(slot: string): string {
    if (!/^[\w.-]{1,64}$/.test(slot)) throw new TypeError("a slot is named by A-Z a-z 0-9 _ . -, at most 64");
    return slot;
  }

  const progress: Progress = {
    async save(name, state, o = {}) {
      const text = JSON.stringify(state);
      if (text?.[0] !== "{") throw new TypeError("a state is an object");
      if (new TextEncoder().encode(text).length > maxStateBytes) {
        throw new ParlorError("payload_too_large", `at most ${maxStateBytes} bytes`);
      }
      const slot = slots.get(check(name)) || {} as Slot;
      if (slots.size >= maxSlots && !slots.has(name)) throw queueFull();
      slots.set(name, slot);
      return new Promise<Saved>((resolve, reject) => {
        const callers = [...(slot.next?.callers || []), { resolve, reject }];
        slot.next = { state: JSON.parse(text), merge: o.merge as any, callers }; // as it is now
        slot.timer ||= setTimeout(run, coalesceMs, name, slot);
      });
    },
    async load(slot) {
      try {
        return await ask("load", { slot: check(slot) });
      } catch (e: any) {
        if (e.code === "slot_not_found") return null;
        throw e;
      }
    },
    list: () => ask("list", {}),
    history: async (slot) => ask("history", { slot: check(slot) }),
    restore: async (slot, version) => ask("restore", { slot: check(slot), version }),
  };

  return {
    progress,
    /** Sends what an earlier page could not. */
    async recover() {
      const storage = await c.shelf;
      for (const key of await storage.keys(prefix)) {
        const name = key.slice(prefix.length);
        const { userId, attempt, next } = JSON.parse((await storage.get(key)) || "{}");
        if (userId !== c.user?.id || slots.has(name)) continue;
        const callers: [] = [];
        const slot = { attempt: attempt && { ...attempt, callers }, next: next && { state: next, callers } };
        slots.set(name, slot);
        run(name, slot);
      }
    },
    /** Sends at once what waits for more: the page may end. */
    flush() {
      for (const [name, slot] of slots) run(name, slot);
    },
    wake: () => socket.isUp() && socket.wake(),
    close() {
      clearTimeout(idleTimer);
      socket.close();
      for (const { timer, running, next } of slots.values()) {
        clearTimeout(timer);
        if (!running) next?.callers.forEach((caller) => caller.reject(closed()));
      }
    },
  };
}
