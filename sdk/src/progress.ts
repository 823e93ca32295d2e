import type { Context } from "./context.js";
import { limitSize, need, ParlorError } from "./errors.js";
import { deferred, jitter, randomHex, sleep } from "./random.js";
import { createSocket } from "./socket.js";
import type { Progress, Saved } from "./types.js";

const coalesceMs = 500;
const idleMs = 15_000; // after which the socket of saves is closed; longer than a reply may take
const maxSlots = 16;
const slotName = /^[\w.-]{1,64}$/;
const maxStateBytes = 256 << 10;
const maxConflicts = 5; // merges of one save

/** A state that is to be saved. Stored as JSON, which leaves out what is a function. */
interface Save {
  state: any;
  /** Names the message. Repeating it with the same id is one save. */
  id?: string;
  version?: number;
  merge?: (mine: any, theirs: any) => any;
  whenDone?: () => Promise<Saved>;
  resolve?(saved: Saved): void;
  reject(e: unknown): void;
}

/** A slot with something to save. All of it is stored until the outcome is known. */
interface Slot {
  /** What is on its way. */
  attempt?: Save;
  /** The newest state that is not on its way yet. */
  next?: Save;
  timer?: any;
  busy?: boolean;
}

export function createProgress(c: Context) {
  const prefix = `${c.prefix}:save:`;
  const slots = new Map<string, Slot>();
  const versions = new Map<string, number>(); // last read, by slot
  let idleTimer: any;

  // The service has saves on a socket of their own. It is open while there is something to do.
  const socket = createSocket(c, "game-data/save");

  async function ask(type: string, data: object, id?: string) {
    clearTimeout(idleTimer);
    idleTimer = setTimeout(() => slots.size || socket.rest(), idleMs);
    const answer = await socket.ask(type, data, id);
    if (answer.version) versions.set(answer.slot, answer.version);
    return answer;
  }

  /** Stores what is not known to be saved yet, for the next page. */
  async function persist(name: string, { attempt, next }: Slot) {
    if (attempt || next) await c.shelf.set(prefix + name, { userId: c.user?.id, attempt, next });
    else await c.shelf.remove(prefix + name);
  }

  /** Sends the attempt of a slot until its outcome is known. */
  async function send(name: string, slot: Slot): Promise<Saved> {
    for (let conflicts = 0, failures = 0; ;) {
      const attempt = slot.attempt!;
      const { state, version, id, merge } = attempt;
      try {
        if (!c.user) await c.session.freshToken(); // known without a connection where a session is stored
        await persist(name, slot);
        return await ask("save", { slot: name, state, version }, id);
      } catch (e: any) {
        const theirs = e.code === "version_conflict" && e.data.current;
        if (e.retryable) {
          await sleep(e.retryAfterMs || jitter(failures++));
        } else if (theirs && merge && conflicts++ < maxConflicts) {
          const merged = await merge(state, theirs.state);
          slot.attempt = { ...attempt, id: randomHex(16), state: merged, version: theirs.version };
        } else {
          if (theirs) e.data = { mine: state, theirs: theirs.state, version: theirs.version };
          throw e;
        }
      }
    }
  }

  /** Saves what there is in a slot, one state after the other. */
  async function run(slot: Slot, name: string) {
    clearTimeout(slot.timer);
    slot.timer = 0;
    if (slot.busy) return persist(name, slot);
    slot.busy = true;
    for (;;) {
      if (!slot.attempt && slot.next) {
        slot.attempt = { ...slot.next, id: randomHex(16), version: versions.get(name) || 0 };
        slot.next = undefined;
      }
      const { attempt } = slot;
      if (!attempt) break;
      try {
        const saved = await send(name, slot);
        attempt.resolve?.(saved);
      } catch (e: any) {
        attempt.reject(e);
        if (e.code === "closed") return slot.next?.reject(e); // they stay stored
      }
      slot.attempt = undefined;
    }
    slots.delete(name);
    await persist(name, slot);
  }

  function check(slot: string): string {
    need(slotName.test(slot), `needs a name like ${slotName}`);
    return slot;
  }

  const progress: Progress = {
    async save(name, state, o = {}) {
      const text = JSON.stringify(state);
      need(text?.[0] === "{", "needs an object");
      limitSize(text, maxStateBytes);
      const slot = slots.get(check(name)) || {} as Slot;
      if (slots.size >= maxSlots && !slots.has(name)) throw new ParlorError("queue_full");
      slots.set(name, slot);
      const { whenDone, resolve, reject } = slot.next?.whenDone ? slot.next as Required<Save> : deferred<Saved>();
      const { merge }: any = o;
      slot.next = { state: JSON.parse(text), merge, whenDone, resolve, reject }; // as it is now
      slot.timer ||= setTimeout(run, coalesceMs, slot, name);
      return whenDone();
    },
    async load(slot) {
      return ask("load", { slot: check(slot) }).catch((e) => {
        if (e.code !== "slot_not_found") throw e;
        return null;
      });
    },
    list: () => ask("list", {}),
    history: async (slot) => ask("history", { slot: check(slot) }),
    restore: async (slot, version) => ask("restore", { slot: check(slot), version }),
  };

  return {
    progress,
    /** Sends what an earlier page could not. */
    async catchUp() {
      for (const key of await c.shelf.keys(prefix)) {
        const name = key.slice(prefix.length);
        const { userId, ...slot } = (await c.shelf.get(key)) || {};
        if (userId !== c.user?.id || slots.has(name)) continue;
        for (const save of [slot.attempt, slot.next]) if (save) save.reject = c.reportError;
        slots.set(name, slot);
        run(slot, name);
      }
    },
    /** Sends at once what waits for more: the page may end. */
    flush() {
      slots.forEach(run);
    },
    wake: () => socket.isUp() && socket.wake(),
    close() {
      clearTimeout(idleTimer);
      socket.close();
      slots.forEach(({ timer, busy, next }) => {
        clearTimeout(timer);
        if (!busy) next?.reject(new ParlorError("closed"));
      });
    },
  };
}
