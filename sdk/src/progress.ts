import type { Context } from "./context.js";
import { ParlorError, queueFull } from "./errors.js";
import { randomHex } from "./random.js";
import { createSocket } from "./socket.js";
import type { Progress, Saved } from "./types.js";

const coalesceMs = 500;
const idleMs = 10_000; // after which the socket of saves is closed
const maxSlots = 16;
const maxStateBytes = 256 << 10;
const maxConflicts = 5; // merges of one save

type Merge = (mine: any, theirs: any) => any;

/** A save on its way: at most one of a slot. */
interface Attempt {
  /** The id of the message: repeating it is one save. */
  id: string;
  slot: string;
  state: object;
  version: number;
}

/** What is stored of a slot until its saves are known to have happened. */
interface Stored {
  userId: number;
  attempt?: Attempt;
  next?: object;
}

interface Callers {
  resolve(saved: Saved): void;
  reject(e: unknown): void;
}

/** What is to be saved in a slot. */
interface Slot {
  /** The newest state that is not on its way yet. */
  next?: { state: object; merge?: Merge; callers: Callers[] };
  attempt?: Attempt;
  busy: boolean;
  timer?: any;
}

export function createProgress(c: Context) {
  const prefix = `${c.prefix}:save:`;
  const slots = new Map<string, Slot>();
  const versions = new Map<string, number>(); // last read, by slot
  const online = new Set<() => void>(); // what waits for a connection
  let idleTimer: any;
  let requests = 0;

  // The service has saves on a socket of their own. It is open while there is something to do.
  const socket = createSocket(c, "game-data/save", {
    expectsHello: false,
    onUp() {
      for (const go of [...online]) go();
    },
    onDown() {},
    onEvent() {},
  });

  async function ask(type: string, data: object, id?: string) {
    clearTimeout(idleTimer);
    requests++;
    try {
      return await socket.request(type, data, id);
    } finally {
      if (!--requests) idleTimer = setTimeout(() => requests || slots.size || socket.rest(), idleMs);
    }
  }

  /** Resolves when there is a connection to the service. */
  const connected = () => new Promise<void>((resolve) => {
    const go = () => {
      online.delete(go);
      resolve();
    };
    online.add(go);
  });

  /** Stores what is not known to be saved yet. */
  async function persist(name: string, { attempt, next }: Slot) {
    const storage = await c.shelf;
    if (!c.user) return;
    const stored: Stored = { userId: c.user.id, attempt, next: next?.state };
    if (attempt || next) await storage.set(prefix + name, JSON.stringify(stored));
    else await storage.remove(prefix + name);
  }

  /** Waits until a call that failed may be tried again; throws what will not mend. */
  async function patience(e: any) {
    if (!e.retryable) throw e;
    if (e.code === "offline" || e.code === "timeout") await connected();
    else await new Promise((resolve) => setTimeout(resolve, e.retryAfterMs || 1000));
  }

  /** Sends a save until its outcome is known. */
  async function deliver(slot: Slot, attempt: Attempt, merge?: Merge): Promise<Saved> {
    for (let conflicts = 0; ;) {
      slot.attempt = attempt;
      const { id, slot: name, state, version } = attempt;
      await persist(name, slot);
      try {
        const saved: Saved = await ask("save", { slot: name, state, version }, id);
        versions.set(name, saved.version);
        return saved;
      } catch (e: any) {
        const { current } = e.data || {};
        if (e.code !== "version_conflict" || !current) {
          await patience(e);
        } else if (merge && conflicts++ < maxConflicts) {
          versions.set(name, current.version);
          attempt = { ...attempt, id: randomHex(16), state: await merge(state, current.state), version: current.version };
        } else {
          const data = { mine: state, theirs: current.state, version: current.version };
          throw new ParlorError(e.code, e.detail, { ...e, data });
        }
      }
    }
  }

  /** Waits for the player, who is known without a connection where a session is stored. */
  async function signedIn() {
    while (!c.user) await c.session.token().catch(patience);
  }

  /** Sends the newest state of a slot, if none is on its way. */
  async function flush(name: string, slot: Slot) {
    clearTimeout(slot.timer);
    slot.timer = undefined;
    if (slot.busy || !slot.next) return persist(name, slot);
    slot.busy = true;
    await signedIn().catch(() => {}); // then sending rejects
    const { state, merge, callers } = slot.next;
    slot.next = undefined;
    const attempt = { id: randomHex(16), slot: name, state, version: versions.get(name) || 0 };
    await finish(name, slot, deliver(slot, attempt, merge), callers);
  }

  /** Settles the callers of an attempt, and goes on with what was saved meanwhile. */
  async function finish(name: string, slot: Slot, attempt: Promise<Saved>, callers: Callers[]) {
    try {
      const saved = await attempt;
      callers.forEach((caller) => caller.resolve(saved));
    } catch (e: any) {
      callers.forEach((caller) => caller.reject(e));
      if (e.code === "closed") return; // it stays stored, for the next page
      if (!callers.length) c.report(e);
    }
    slot.busy = false;
    slot.attempt = undefined;
    await persist(name, slot);
    if (slot.next) flush(name, slot);
    else slots.delete(name);
  }

  function check(slot: string): string {
    if (!/^[\w.-]{1,64}$/.test(slot)) throw new TypeError("a slot is named by 1 to 64 of A-Z a-z 0-9 _ . -");
    return slot;
  }

  const progress: Progress = {
    async save(name, state, o = {}) {
      if (!state || typeof state !== "object" || Array.isArray(state)) throw new TypeError("a state is an object");
      const text = JSON.stringify(state);
      if (new TextEncoder().encode(text).length > maxStateBytes) {
        throw new ParlorError("payload_too_large", `a state has at most ${maxStateBytes} bytes`);
      }
      let slot = slots.get(check(name));
      if (!slot) {
        if (slots.size >= maxSlots) throw queueFull(`saves of ${maxSlots} slots wait`);
        slots.set(name, (slot = { busy: false }));
      }
      const own = slot;
      return new Promise<Saved>((resolve, reject) => {
        const callers = [...(own.next?.callers || []), { resolve, reject }];
        own.next = { state: JSON.parse(text), merge: o.merge as Merge, callers }; // as it is now
        own.timer ||= setTimeout(flush, coalesceMs, name, own);
      });
    },
    async load(slot) {
      try {
        const saved = await ask("load", { slot: check(slot) });
        versions.set(slot, saved.version);
        return saved;
      } catch (e: any) {
        if (e.code === "slot_not_found") return null;
        throw e;
      }
    },
    list: () => ask("list", {}),
    history: async (slot) => ask("history", { slot: check(slot) }),
    async restore(slot, version) {
      const saved = await ask("restore", { slot: check(slot), version });
      versions.set(slot, saved.version);
      return saved;
    },
  };

  return {
    progress,
    /** Called when the service can be reached again. */
    onUp() {
      for (const go of [...online]) go();
    },
    /** Sends what an earlier page could not. */
    async recover() {
      const storage = await c.shelf;
      for (const key of await storage.keys(prefix)) {
        const name = key.slice(prefix.length);
        const { userId, attempt, next }: Stored = JSON.parse((await storage.get(key)) || "{}");
        if (userId !== c.user?.id || slots.has(name)) continue;
        const slot: Slot = { busy: !!attempt, next: next && { state: next, callers: [] } };
        slots.set(name, slot);
        if (attempt) finish(name, slot, deliver(slot, attempt), []);
        else flush(name, slot);
      }
    },
    /** Sends at once what waits for more: the page may end. */
    flush() {
      for (const [name, slot] of slots) flush(name, slot);
    },
    wake: () => socket.isUp() && socket.wake(),
    close() {
      clearTimeout(idleTimer);
      socket.close();
      for (const slot of slots.values()) {
        clearTimeout(slot.timer);
        slot.next?.callers.forEach((caller) => caller.reject(new ParlorError("closed", "the client was closed")));
      }
      for (const go of [...online]) go();
    },
  };
}
