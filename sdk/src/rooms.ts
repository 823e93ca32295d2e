import type { Context } from "./context.js";
import { createEmitter, type Emitter } from "./emitter.js";
import { ParlorError } from "./errors.js";
import { createOutbox } from "./outbox.js";
import type { CallOptions, CreateRoom, Page, Room, RoomData, RoomQuery, Rooms } from "./types.js";

const maxSubscriptions = 16; // of one connection
const eventWaitMs = 5000; // how long a call waits for the events that it caused
const maxMerges = 3;
const maxCandidates = 5; // rooms that quick tries

/** What the SDK knows of a room beside its fields. */
interface Inner {
  emitter: Emitter;
  /** The position of the last event that was applied. */
  position: string;
  /** Whether the reply to a subscription is awaited. */
  syncing: boolean;
  /** What waits for the room to reach a seq. */
  waits: Set<() => void>;
  sharedVersion: number;
  /** Rises with each call that gives the room. */
  touched: number;
  /** Whether its events are no longer followed. */
  forgotten: boolean;
}

/** A room's name for an event: `host_changed` is `hostChanged`. */
const eventName = (type: string) => type.slice(5).replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

const hasEnded = (room: RoomData) => room.status === "FINISHED" || room.status === "CANCELLED";

/** Changes the fields of a room by an event. An event carries the change, a snapshot the whole. */
function applyChange(room: RoomData, name: string, e: any) {
  const seat = (userId: number, change: object) => {
    room.seats = room.seats.map((s) => (s.userId === userId ? { ...s, ...change } : s));
  };
  const without = (userId: number) => {
    room.participants = room.participants.filter((u) => u.id !== userId);
  };
  const removeSeats = (gone: (s: RoomData["seats"][0]) => boolean) => {
    room.seats = room.seats.filter((s) => !gone(s));
  };
  if (e.totalWagerAmount !== undefined) {
    room.totalWager = e.totalWager;
    room.totalWagerAmount = e.totalWagerAmount;
  }
  if (name === "joined") {
    without(e.user.id);
    removeSeats((s) => s.userId === e.user.id); // it was reserved
    room.participants = [...room.participants, e.user];
    room.seats = [...room.seats, { userId: e.user.id, state: "active", ready: false, joinedAt: e.at }];
  } else if (name === "left") {
    without(e.userId);
    if (e.reason === "forfeited") seat(e.userId, { state: "forfeited" });
    else removeSeats((s) => s.userId === e.userId);
  } else if (name === "ready") {
    seat(e.userId, { ready: e.ready });
  } else if (name === "hostChanged") {
    room.host = room.participants.find((u) => u.id === e.userId) || room.host;
  } else if (name === "started") {
    room.status = "STARTED";
    room.startedAt = e.startedAt;
    removeSeats((s) => s.state === "reserved");
  } else if (name === "disputed") {
    room.status = "DISPUTED";
  } else if (name === "finished") {
    room.status = "FINISHED";
    room.finishedAt = e.at;
    for (const member of ["results", "payouts", "rake", "rakeAmount"] as const) (room as any)[member] = e[member];
  } else if (name === "cancelled") {
    room.status = "CANCELLED";
    room.finishedAt = e.at;
    room.reason = e.reason;
    room.refunds = e.refunds;
  } else if (name === "rematch") {
    room.rematchRoomId = e.newRoomId;
  }
}

export function createRooms(c: Context) {
  const known = new Map<string, { room: Room; inner: Inner }>();
  const outbox = createOutbox(c);
  let touches = 0;

  const call = (method: string, verb: string, o: object) => c.http(method, `game-session/${verb}`, o);

  function createRoom(data: any): Room {
    const roomId = data.roomId;
    const emitter = createEmitter(c.report);
    const inner: Inner = {
      emitter, position: "", syncing: false, waits: new Set(), sharedVersion: 0, touched: 0, forgotten: false,
    };

    /** Calls a verb and resolves once its events have been heard: fields change in their order only. */
    async function act(verb: string, body: object = {}): Promise<Room> {
      const after = await call("POST", verb, { body: { roomId, ...body } });
      await heard(inner, () => room.seq >= after.seq);
      return room;
    }

    const shared = {
      value: {} as Record<string, unknown>,
      async set(patch: Record<string, unknown>, o: { delete?: string[] } = {}) {
        for (let n = 0; ; n++) {
          const version = inner.sharedVersion;
          try {
            const done = await c.socket.request("room.state.set", { roomId, version, patch, delete: o.delete });
            await heard(inner, () => inner.sharedVersion >= done.version);
            return done.version as number;
          } catch (e: any) {
            if (e.code !== "version_conflict" || n >= maxMerges) throw e;
            const { current } = e.data;
            // The events that were first are on their way already, before this reply or right after it.
            if (inner.sharedVersion === version) {
              inner.sharedVersion = current?.version ?? current ?? version;
              if (current?.value) shared.value = current.value;
            }
          }
        }
      },
    };

    const methods = {
      on: emitter.on,
      once: emitter.once,
      events: emitter.events,
      shared,
      setReady: (ready = true) => act("ready", { ready }),
      start: () => act("start"),
      leave: () => act("leave"),
      cancel: () => act("cancel"),
      finish: (results: unknown) => act("finish", { results }),
      kick: (userId: number, o = {}) => act("kick", { userId, ...o }),
      makeHost: (userId: number) => act("transfer-host", { userId }),
      rematch: async () => follow(await call("POST", "rematch", { body: { roomId } })),
      send: (op: string, payload: unknown, o = {}) => outbox.send(roomId, op, payload, o),
    };
    const room: any = {};
    // Not enumerable, so that a copy and JSON have the fields of a room only.
    for (const [name, value] of Object.entries(methods)) Object.defineProperty(room, name, { value });
    known.set(roomId, { room, inner });
    replace(room, inner, data);
    return room;
  }

  /** Sets every field from a snapshot. */
  function replace(room: any, inner: Inner, data: any, position = data.position) {
    const { shared, ...fields } = data;
    if (shared) {
      room.shared.value = shared.value;
      inner.sharedVersion = shared.version;
    }
    Object.assign(room, fields);
    inner.position = room.position = position || "";
  }

  /** Resolves when the room has heard what `isThere` asks for, or after a while. */
  function heard(inner: Inner, isThere: () => boolean) {
    return new Promise<void>((resolve) => {
      const timer = setTimeout(done, eventWaitMs);
      function check() {
        if (inner.forgotten || isThere()) done();
      }
      function done() {
        clearTimeout(timer);
        inner.waits.delete(check);
        resolve();
      }
      inner.waits.add(check);
      check();
    });
  }

  /** Returns the one object of a room and subscribes to it. `data` is how it was a moment ago. */
  async function follow(data: RoomData): Promise<Room> {
    let entry = known.get(data.roomId);
    if (entry) {
      await heard(entry.inner, () => entry!.room.seq >= data.seq);
    } else {
      createRoom(data);
      entry = known.get(data.roomId)!;
      makeSpace();
      subscribe(entry.room, entry.inner);
    }
    entry.inner.touched = ++touches;
    return entry.room;
  }

  /** Stops following the room that matters least, when a connection cannot follow one more. */
  function makeSpace() {
    if (known.size <= maxSubscriptions) return;
    const rank = ({ room, inner }: { room: Room; inner: Inner }) => {
      const seated = room.participants.some((u) => u.id === c.user?.id);
      return inner.touched + (hasEnded(room) ? 0 : seated ? 2e9 : 1e9);
    };
    const [least] = [...known.values()].slice(0, -1).sort((a, b) => rank(a) - rank(b));
    forget(least.room, least.inner);
    if (c.socket.isUp()) c.socket.request("room.unsubscribe", { roomId: least.room.roomId }).catch(() => {});
  }

  function forget(room: Room, inner: Inner) {
    known.delete(room.roomId);
    inner.forgotten = true;
    for (const check of [...inner.waits]) check();
  }

  async function subscribe(room: Room, inner: Inner) {
    if (inner.syncing || !c.socket.isUp()) return; // onUp subscribes to all
    inner.syncing = true;
    const { roomId } = room;
    try {
      const reply = await c.socket.request("room.subscribe", { roomId, after: inner.position || undefined });
      inner.syncing = false;
      if (reply.mode === "snapshot") applySnapshot(room, inner, reply.room, reply.position);
    } catch (e: any) {
      inner.syncing = false;
      if (e.code === "closed" || e.code === "offline" || inner.forgotten) return;
      if (e.retryable) {
        setTimeout(() => subscribe(room, inner), e.retryAfterMs || 1000);
      } else {
        forget(room, inner); // it is gone, or may not be seen any more
        c.report(e);
      }
    }
  }

  function applySnapshot(room: Room, inner: Inner, data: any, position: string) {
    if (data.version < room.version || data.seq < room.seq) return; // older than what was shown already
    const lost = data.seq !== room.seq || (inner.position && position !== inner.position);
    replace(room, inner, data, position);
    if (lost) {
      const e = { type: "resynced", roomId: room.roomId, seq: room.seq, at: new Date(c.time()).toISOString(), room };
      announce(inner, "resynced", e);
    }
  }

  function announce(inner: Inner, name: string, e: any) {
    inner.emitter.emit(name, e);
    inner.emitter.emit("change", e);
    for (const check of [...inner.waits]) check();
  }

  function onEvent(frame: any) {
    const entry = known.get(frame.roomId);
    if (!entry) return;
    const { room, inner } = entry;
    const { type, seq, at, data } = frame;
    if (type === "room.snapshot") return applySnapshot(room, inner, data.room, data.position);
    const name = eventName(type);
    const e = { ...data, type: name, roomId: room.roomId, seq, at };
    if (name === "message") return inner.emitter.emit(name, e);
    if (seq) {
      if (seq <= room.seq) return; // heard already
      if (seq > room.seq + 1) return subscribe(room, inner); // a hole: everything after the position again
      c.syncClock(Date.parse(at));
    }
    if (name === "state") {
      if (data.version <= inner.sharedVersion) return;
      inner.sharedVersion = data.version;
      const value = { ...room.shared.value, ...data.patch };
      for (const member of data.delete || []) delete value[member];
      (room.shared as any).value = value;
    } else {
      applyChange(room, name, e);
      if (data.version > room.version) room.version = data.version;
    }
    if (seq) {
      room.seq = seq;
      inner.position = room.position = frame.position;
    }
    announce(inner, name, e);
  }

  const one = (room: string | { code: string }) => {
    if (typeof room === "string" && room) return { roomId: room };
    if (room && typeof (room as any).code === "string") return { code: (room as any).code };
    throw new TypeError('name the room by its roomId or as { code: "K7QX2M" }');
  };

  const rooms: Rooms = {
    create: async (input, o) => follow(await post("create", check(input), o)),
    async join(room, o) {
      let target: { roomId?: string; code?: string } = one(room);
      if (target.code) target = await call("GET", "get", { query: target });
      return follow(await post("join", { roomId: target.roomId }, o));
    },
    async get(room) {
      return follow(await call("GET", "get", { query: one(room) }));
    },
    list: (query: RoomQuery = {}) => call("GET", "list", { query }),
    async mine() {
      const page: Page<RoomData> = await call("GET", "list", { query: { mine: true, limit: maxSubscriptions } });
      return Promise.all(page.items.map(follow));
    },
    async quick(input, o) {
      const { entryTokenId, roomEntry } = check(input);
      const page = await rooms.list({ entryTokenId: entryTokenId ?? undefined, hasSeat: true, limit: 100 });
      const fits = (room: any) => !!room.entryToken === !!entryTokenId && !room.isFriendsOnly &&
        Number(room.roomEntry) === Number(roomEntry || 0) &&
        (["maxPlayers", "minPlayers", "settlement", "autoStart"] as const).every((member) =>
          input[member] === undefined || input[member] === room[member]);
      for (const room of page.items.filter(fits).slice(0, maxCandidates)) {
        try {
          return await rooms.join(room.roomId, { signal: o?.signal });
        } catch (e) {
          // Somebody else was faster, or is not welcome: the next one may do.
          if (!(e instanceof ParlorError && [403, 404, 409].includes(e.status))) throw e;
        }
      }
      return rooms.create(input, o);
    },
  };

  function post(verb: string, body: object, o: CallOptions = {}) {
    return call("POST", verb, { body, key: o.idempotencyKey, signal: o.signal });
  }

  function check(input: CreateRoom): CreateRoom {
    if (!(input?.maxPlayers > 0)) throw new TypeError("a room needs maxPlayers, such as { maxPlayers: 2 }");
    return input;
  }

  return {
    rooms,
    onEvent,
    onUp() {
      for (const { room, inner } of known.values()) {
        inner.syncing = false;
        subscribe(room, inner);
      }
      outbox.flush();
    },
    close() {
      outbox.close();
      for (const { room, inner } of [...known.values()]) {
        forget(room, inner);
        inner.emitter.end();
      }
    },
  };
}
