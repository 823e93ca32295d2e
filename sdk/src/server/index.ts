import { need, ParlorError } from "../errors.js";
import { origin } from "../origin.js";
import { deferred, jitter, randomHex, sleep } from "../random.js";
import type { RoomData } from "../types.js";
import { createConnection } from "./connection.js";
import { createFeeds, type Entry } from "./positions.js";
import { hasRoom, parseShare } from "./share.js";
import type { Call, Kind, Positions, RoomRef, Server, ServerOptions, ServerState } from "./types.js";

export { ParlorError } from "../errors.js";
export { filePositions } from "./files.js";
export { verifyWebhook, type Webhook, type WebhookHeaders } from "./webhook.js";
export type { Code } from "../generated/codes.js";
export type * from "./types.js";

const maxAttempts = 8; // of a handler that throws
const maxBehind = 10_000; // events and calls that wait; above it no more are taken
const closeMs = 10_000;
const pageLimit = 100;
const codePattern = /^[a-z_]{1,40}$/;

/** The error of a call: the player's `room.call` rejects with game_error, and `code` is its `data.gameCode`. */
export class GameError extends Error {
  /** 1 to 40 characters of a-z and `_`. */
  declare readonly code: string;
  /** A sentence for the player. */
  declare readonly detail?: string;

  constructor(code: string, detail?: string) {
    need(codePattern.test(code), "GameError needs a code of a-z and _, at most 40");
    super(detail || code);
    Object.assign(this, { name: "GameError", code, detail });
  }
}

/** Returns the kind that a server asks for to hear events of a type; undefined for its own events. */
function kindOf(type: string): Kind | undefined {
  if (/^room\.(joined|left|ready|host_changed)$/.test(type)) return "seats";
  if (type.startsWith("room.")) return "rooms";
  if (type.startsWith("tournament.")) return "tournaments";
  return type === "ledger.entry" ? "money" : undefined;
}

/**
 * Returns the server of a game at once. It dials out to the node, and connects and comes back by itself:
 * it needs no address of its own. Throws a TypeError when an option is missing or of a wrong type.
 */
export function server(options: ServerOptions): Server {
  const { url, key, positions } = options || {};
  need(origin.test(url!), "server needs url, such as http://localhost:8080");
  need(key && typeof key === "string", "server needs key, a server key of the game");
  const share = parseShare(options.share);

  const listeners = new Map<string, Set<(value: any) => unknown>>();
  const calls = new Map<string, (call: Call) => unknown>();
  const tails = new Map<string, Promise<unknown>>(); // the last job of each room
  const feeds = createFeeds();
  const opened = deferred<void>();
  const ready = opened.whenDone();
  ready.catch(() => {}); // it is reported as an error as well
  let onRoom: ((room: RoomData) => unknown) | undefined;
  let state: ServerState = "connecting";
  let subscribed = new Set<Kind>();
  let takesCalls = false;
  let wasOnline = false;
  let isClosing = false;
  let waiting = 0; // jobs
  let reconciling = 0; // while positions are not saved: the rooms have to be read first
  let isDirty = false;
  let saving: Promise<void> | undefined;

  function report(e: unknown) {
    const all = listeners.get("error");
    try {
      if (all?.size) return all.forEach((fn) => fn(e));
    } catch (other) {
      console.error(other);
    }
    console.error(e);
  }

  function setState(next: ServerState) {
    if (state === next || state === "closed") return;
    state = next;
    listeners.get("state")?.forEach((fn) => {
      try {
        fn(next);
      } catch (e) {
        report(e);
      }
    });
  }

  /** Runs a job after those that were added for the same room. Jobs do not throw. */
  function addJob(room: string, job: () => Promise<unknown>): Promise<unknown> {
    waiting++;
    const tail = (tails.get(room) || Promise.resolve()).then(job).finally(() => {
      waiting--;
      if (tails.get(room) === tail) tails.delete(room);
    });
    tails.set(room, tail);
    return tail;
  }

  /** Calls a handler until it succeeds, at most maxAttempts times. Returns false when the server ends before. */
  async function attempt(fn: () => unknown): Promise<boolean> {
    for (let n = 1; ; n++) {
      try {
        await fn();
        return true;
      } catch (e) {
        if ((e as ParlorError)?.code === "closed") return false;
        report(e);
        if (n === maxAttempts) return true;
      }
      if (isClosing) return false;
      await sleep(jitter(n));
    }
  }

  function savePositions(): Promise<void> {
    if (saving) return saving;
    if (!positions || !isDirty || reconciling) return Promise.resolve();
    saving = (async () => {
      for (let n = 0; isDirty && !reconciling;) {
        isDirty = false;
        try {
          await positions.save({ ...feeds.handled });
        } catch (e) {
          report(e);
          isDirty = true;
          if (isClosing) return;
          await sleep(jitter(n++));
        }
      }
    })().finally(() => { saving = undefined; });
    return saving;
  }

  function finish(entry: Entry) {
    if (!feeds.finish(entry)) return;
    isDirty = true;
    void savePositions();
  }

  /** Goes on at positions without what was before. */
  function moveOn(next: Positions) {
    for (const feed in next) finish(feeds.add(feed, next[feed], false));
  }

  /** Goes on at positions after a loss: the rooms are read, and until then no position is saved. */
  async function catchUp(next: Positions) {
    reconciling++;
    moveOn(next);
    if (!(await attempt(reconcile))) return; // the next process does it
    reconciling--;
    await savePositions();
  }

  async function reconcile() {
    if (!onRoom) return;
    const jobs: Promise<unknown>[] = [];
    for (const status of ["CREATED", "STARTED", "DISPUTED"] as const) {
      for (let cursor: string | undefined; ;) {
        const page = await rooms({ status, limit: pageLimit, cursor });
        for (const room of page.items) {
          if (!hasRoom(share, room.roomId)) continue;
          jobs.push(addJob(room.roomId, () => attempt(() => onRoom!(room))));
        }
        if (!(cursor = page.nextCursor || undefined)) break;
      }
    }
    if ((await Promise.all(jobs)).includes(false)) throw new ParlorError("closed");
  }

  /** The kinds that the options name, or those of the listeners. */
  const wantedKinds = (): Kind[] => options.kinds ||
    [...new Set<Kind>(["rooms", ...[...listeners.keys()].map(kindOf).filter((kind) => kind !== undefined)])];

  async function subscribe() {
    const kinds = wantedKinds();
    subscribed = new Set(kinds);
    const after = { ...feeds.heard };
    takesCalls = calls.size > 0;
    const { mode, position } = await connection.ask("game.subscribe", { kinds, share, after, calls: takesCalls });
    // Of a feed that resumes it is the one that was named; the others begin there.
    const moved = Object.fromEntries(Object.entries<string>(position).filter(([feed, one]) => after[feed] !== one));
    if (mode === "resume") moveOn(moved);
    else void catchUp(moved);
  }

  function onFrame(frame: any, answer: (frame: object) => void) {
    const { type, feed, position, roomId, data } = frame;
    if (type === "server.draining" && data.reconnectInMs >= 0) connection.drain(data.reconnectInMs);
    if (isClosing) return; // it is heard again by the next process
    if (type === "room.call") return onCallFrame({ roomId, ...data }, answer);
    if (!feed) return;
    if (type === "game.gap") return void catchUp({ [feed]: position });
    if (feeds.isOld(feed, position)) return;
    const all = [...listeners.get(type) || []];
    const entry = feeds.add(feed, position, false);
    if (!all.length) return finish(entry);
    const room = roomId || (frame.tournamentId ? `tournament ${frame.tournamentId}` : feed);
    void addJob(room, async () => {
      for (const fn of all) if (!(await attempt(() => fn(frame)))) return; // it is heard again by the next process
      finish(entry);
    });
  }

  function onCallFrame(call: Call, answer: (frame: object) => void) {
    const { callId, roomId, op } = call;
    const reply = (data: object) => answer({ type: "room.reply", data: { callId, ...data } });
    const fn = calls.get(op);
    if (!fn) return reply({ error: { code: "unknown_op", detail: `the server has no operation ${op}` } });
    void addJob(roomId, async () => {
      try {
        reply({ payload: await fn(call) ?? null });
      } catch (e) {
        const { name, code, detail } = e as GameError;
        const isMeant = name === "GameError"; // also of another copy of this package
        if (!isMeant) report(e);
        reply({ error: isMeant ? { code, detail } : { code: "internal" } });
      }
    });
  }

  const connection = createConnection(url!.replace(/\/+$/, ""), options, {
    onHello: subscribe,
    onFrame,
    onUp() {
      wasOnline = true;
      setState("online");
      opened.resolve();
    },
    onDown: () => setState("reconnecting"),
    onTrouble: report,
    onEnd(e) {
      opened.reject(e);
      setState("closed");
      report(e);
    },
    isBehind: () => waiting > maxBehind,
  });

  async function begin() {
    try {
      const saved = await positions?.load();
      if (saved) feeds.restore(saved);
    } catch (e) { // without them events would be skipped
      connection.close();
      opened.reject(e);
      setState("closed");
      return report(e);
    }
    if (!isClosing) connection.start();
  }
  queueMicrotask(begin); // so that listeners come first

  const idOf = (room: RoomRef): string => (typeof room === "string" ? room : room.roomId);
  const change = (verb: string, room: RoomRef, data: object, key?: string) =>
    connection.change(`room.${verb}`, { roomId: idOf(room), ...data }, key || randomHex(16));
  const read = (path: string, query: object) => connection.http(path, { query, retries: Infinity });
  const rooms: Server["rooms"] = (query = {}) => read("admin/rooms", query);

  return {
    get state() { return state; },
    ready,
    on(type, fn) {
      need(typeof fn === "function", "on needs a function");
      let all = listeners.get(type);
      if (!all) listeners.set(type, all = new Set());
      all.add(fn);
      const kind = kindOf(type);
      if (wasOnline && !options.kinds && kind && !subscribed.has(kind)) connection.drop(); // comes back with this kind
      return () => { all.delete(fn); };
    },
    onCall(op, fn) {
      need(typeof fn === "function", "onCall needs a function");
      calls.set(op, fn);
      if (wasOnline && !takesCalls) connection.drop(); // comes back to take them
    },
    onRoom(fn) { onRoom = fn; },
    reconcile,
    start: (room, o) => change("start", room, {}, o?.key),
    finish: (room, results, o) => change("finish", room, { results }, o?.key),
    cancel: (room, o) => change("cancel", room, {}, o?.key),
    async setState(room, patch, { version, delete: names, key } = {}) {
      for (let expected = version ?? 0; ;) {
        try {
          const set = await change("state.set", room, { version: expected, patch, delete: names }, key);
          return set.shared?.version ?? set.version;
        } catch (e: any) {
          const current = e.data?.current?.version;
          if (e.code !== "version_conflict" || version !== undefined || key || !(current >= 0)) throw e;
          expected = current;
        }
      }
    },
    setTurn: async (room, userId, seconds, o) => { await change("turn.set", room, { userId, seconds }, o?.key); },
    send: (room, op, payload, o) => connection.tell("room.send", { roomId: idOf(room), op, payload, ...o }),
    message: async (userId, op, payload) => { await connection.http(`admin/users/${userId}/messages`, { body: { op, payload } }); },
    room: (room) => read("game-session/get", { roomId: idOf(room) }),
    rooms,
    async close() {
      if (isClosing) return;
      isClosing = true;
      let timer: any;
      const late = new Promise<void>((resolve) => { timer = setTimeout(resolve, closeMs); });
      // So that calls go to another server at once.
      if (state === "online") await Promise.race([connection.ask("game.unsubscribe", {}).catch(() => {}), late]);
      while (tails.size && await Promise.race([Promise.all(tails.values()).then(() => true), late])) { /* jobs add jobs */ }
      clearTimeout(timer);
      await savePositions();
      connection.close();
      opened.reject(new ParlorError("closed"));
      setState("closed");
    },
  };
}
