import type { Context } from "./context.js";
import { createEmitter, type Emitter } from "./emitter.js";
import { isRefusal, need, problemError } from "./errors.js";
import { createOutbox } from "./outbox.js";
import type { CallOptions, Room, RoomData, Rooms } from "./types.js";

const maxSubscriptions = 16; // of one connection; at most as many as one room.subscribe may name
const retryMs = 1000; // after which a subscription is asked for again
const eventWaitMs = 5000; // how long a call waits for the events that it caused
const maxMerges = 3;
const maxCandidates = 5; // rooms that quick tries

/** A room whose events are followed. */
interface Followed {
  /** The object that the page has. */
  live: any;
  emitter: Emitter;
  /** Whether the reply to a subscription is awaited. */
  busy?: boolean;
  /** What waits for an event. */
  waits: Set<() => void>;
  sharedVersion: number;
  /** Whether its events are no longer followed. */
  forgotten?: boolean;
}

/** Changes the fields of a room by an event. An event carries the change, a snapshot the whole. */
function applyChange(room: any, name: string, data: any, at: string) {
  const { reason, code, ...fields } = data; // of a player who left, of another room
  for (const field in fields) if (field in room) room[field] = fields[field];
  const { user, userId = user?.id } = data;
  const isTheirs = (x: any) => x.userId === userId || x.id === userId;
  const seat = room.seats.find(isTheirs) || {};
  const remove = (list: string) => room[list] = room[list].filter((x: any) => !isTheirs(x));
  if (user) {
    remove("participants").push(user);
    remove("seats").push({ userId, state: "active", ready: false, joinedAt: at }); // it may have been reserved
  }
  if (name === "left") {
    remove("participants");
    if (reason === "forfeited") seat.state = reason;
    else remove("seats");
  }
  if (/connected/.test(name)) room.presence = [{ connected: !data.graceUntil, ...fields }, ...room.presence || []];
  room.presence &&= room.participants.map(({ id: userId }: any) => // in seating order, as a snapshot has it
    room.presence.find((p: any) => p.userId === userId) || { userId, connected: false });
  if (name === "ready") seat.ready = data.ready;
  if (name === "hostChanged") room.host = room.participants.find(isTheirs) || room.host;
  if (name === "result") { // in seating order, as a snapshot has them
    room.reportedBy = room.seats.map((s: any) => s.userId)
      .filter((id: any) => id === userId || room.reportedBy.includes(id));
  }
  if (data.until) room.reportUntil = data.until;
  if (data.newRoomId) room.rematchRoomId = data.newRoomId;
  if (name === "turn") room.turn = userId && { userId, deadline: data.deadline };
  if (/^(start|finish|cancell|disput)ed$/.test(name)) {
    room.status = name.toUpperCase();
    room.seats = room.seats.filter((s: any) => s.state !== "reserved");
    room[name === "cancelled" ? "finishedAt" : name + "At"] = at;
    if (reason) room.reason = reason;
    delete room.turn;
    if (room.finishedAt) {
      delete room.presence;
      if (room.reportedBy) room.reportUntil = room.refundAt = null;
    }
  }
}

export function createRooms(c: Context) {
  const known = new Map<string, Followed>(); // the last one that a call gave is last
  const outbox = createOutbox(c);

  const post = (verb: string, body: object, o?: CallOptions) =>
    c.http(`game-session/${verb}`, { ...o, body });
  const read = (verb: string, query?: object) => c.http(`game-session/${verb}`, { query });

  /** Resolves when what `isThere` asks for was heard, or after a while. */
  const heard = (f: Followed, isThere: () => boolean) => new Promise<void>((resolve) => {
    const timer = setTimeout(done, eventWaitMs);
    function done() {
      clearTimeout(timer);
      f.waits.delete(check);
      resolve();
    }
    function check() {
      if (f.forgotten || isThere()) done();
    }
    f.waits.add(check);
    check();
  });

  function createRoom(roomId: string): Followed {
    const emitter = createEmitter(c.reportError);
    /** Calls a verb and resolves once its events have been heard: fields change in their order only. */
    async function act(verb: string, body?: object): Promise<Room> {
      const { seq } = await post(verb, { roomId, ...body });
      await heard(f, () => f.live.seq >= seq);
      return f.live;
    }

    const shared = {
      value: {},
      async set(patch: object, o: { delete?: string[] } = {}) {
        for (let n = 0; ; n++) {
          const version = f.sharedVersion;
          const set = { roomId, version, patch, ...o };
          const reply = await c.socket.ask("room.state.set", set).catch((e) => {
            if (e.code !== "version_conflict" || n >= maxMerges) throw e;
          });
          await heard(f, () => f.sharedVersion > version); // the event of this change, or of who was first
          if (reply) return reply.version;
        }
      },
    };

    const methods: Record<string, unknown> = {
      ...emitter, shared,
      setReady: (ready = true) => act("ready", { ready }),
      finish: (results: unknown) => act("finish", { results }),
      kick: (userId: number, o?: object) => act("kick", { userId, ...o }),
      makeHost: (userId: number) => act("transfer-host", { userId }),
      setTurn: (userId: number | null, seconds?: number) => act("turn", { userId, seconds }),
      rematch: async () => follow(await post("rematch", { roomId })),
      send: (op: string, payload: unknown, o = {}) => outbox.send(roomId, op, payload, o),
      call: async (op: string, payload: unknown, o?: object) =>
        (await c.socket.ask("room.call", { roomId, op, payload, ...o })).payload,
      unwatch: () => unwatch(f),
    };
    for (const verb of ["start", "leave", "cancel"]) methods[verb] = () => act(verb);
    // They are inherited, so that a copy and JSON have the fields of a room only.
    const f: Followed = { live: Object.create(methods), emitter, waits: new Set(), sharedVersion: 0 };
    return f;
  }

  /** Sets every field from a snapshot. */
  function replace(f: Followed, { shared, ...fields }: any) {
    if (shared) {
      f.live.shared.value = shared.value;
      f.sharedVersion = shared.version;
    }
    for (const field in f.live) delete f.live[field]; // what the snapshot lacks is gone
    Object.assign(f.live, fields);
  }

  /** Returns the one object of a room and subscribes to it. `data` is how it was a moment ago. */
  async function follow(data: RoomData): Promise<Room> {
    const { roomId, seq } = data;
    let f = known.get(roomId)!;
    if (f) {
      known.delete(roomId);
    } else {
      f = createRoom(roomId);
      replace(f, data);
      makeSpace();
      subscribe([f]);
    }
    known.set(roomId, f);
    await heard(f, () => f.live.seq >= seq);
    return f.live;
  }

  /** Stops following the room that matters least, when a connection cannot follow one more. */
  function makeSpace() {
    if (known.size < maxSubscriptions) return;
    const all = [...known.values()];
    const isNotPlayed = ({ live: room }: Followed) =>
      room.finishedAt || !room.participants.some((u: any) => u.id === c.user?.id);
    unwatch(all.find(isNotPlayed) || all[0]);
  }

  function unwatch(f: Followed) {
    if (f.forgotten) return;
    forget(f);
    if (c.socket.isUp()) c.socket.ask("room.unsubscribe", { roomId: f.live.roomId }).catch(() => {});
  }

  function forget(f: Followed) {
    known.delete(f.live.roomId);
    f.forgotten = true;
    f.waits.forEach((check) => check());
    f.emitter.end(); // what waits for an event hears none
  }

  /** Subscribes to rooms by one message, and later again to those for which that may help. */
  async function subscribe(wanted: Followed[]) {
    const list = wanted.filter((f) => !f.busy && !f.forgotten);
    if (!list.length || !c.socket.isUp()) return; // onUp subscribes to all
    const rooms = list.map((f) => {
      f.busy = true;
      return { roomId: f.live.roomId, after: f.live.position };
    });
    const reply = await c.socket.ask("room.subscribe", { rooms }).catch((error) => ({ error }));
    const failed = list.filter((f, i) => {
      const { room, error: problem } = reply.rooms?.[i] || {};
      const error = problem ? problemError(c.base, problem) : reply.error;
      f.busy = false;
      if (f.forgotten) return false;
      if (room) applySnapshot(f, room);
      if (!error || error.retryable) return error;
      forget(f); // it is gone, or may not be seen any more
      c.reportError(error);
    });
    if (failed.length) setTimeout(subscribe, retryMs, failed);
  }

  /**
   * Shows a snapshot, also one with a lower number: the service sends none that is older than what it
   * sent before, so the events above that number are undone.
   */
  function applySnapshot(f: Followed, data: any) {
    const room = f.live;
    const isSame = room.position ? room.position === data.position : room.seq === data.seq; // positions have the seq
    replace(f, data);
    if (!isSame) {
      announce(f, { type: "resynced", roomId: room.roomId, seq: room.seq, at: new Date(c.time()).toISOString(), room });
    }
  }

  function announce(f: Followed, e: any) {
    f.emitter.emit(e.type, e);
    f.emitter.emit("change", e);
    f.waits.forEach((check) => check());
  }

  function onEvent({ type, roomId, seq, position, at, data }: any) {
    const f = known.get(roomId);
    if (!f) return;
    if (type === "room.snapshot") return applySnapshot(f, data.room);
    const room = f.live;
    const name = type.slice(5).replace("_c", "C"); // host_changed alone has two words
    const e = { ...data, type: name, roomId, seq, at };
    if (name === "message") return f.emitter.emit(name, e);
    if (seq) {
      if (seq <= room.seq) return; // heard already
      if (seq > room.seq + 1) return subscribe([f]); // a hole: everything after the position again
      Object.assign(room, { seq, position });
    }
    if (name === "state") {
      f.sharedVersion = data.version;
      const value = room.shared.value = { ...room.shared.value, ...data.patch };
      for (const member of data.delete) delete value[member];
    } else {
      applyChange(room, name, data, at);
    }
    announce(f, e);
  }

  function query(room: any) {
    const isId = typeof room === "string";
    need(isId ? room : room?.code, "needs roomId or code");
    return isId ? { roomId: room } : { code: room.code };
  }

  const check = (input: any) => need(input?.maxPlayers > 0, "needs maxPlayers");

  const rooms: Rooms = {
    async create(input, o) {
      check(input);
      return follow(await post("create", input, o));
    },
    async join(room, o) {
      const { roomId = (await read("get", query(room))).roomId } = query(room);
      return follow(await post("join", { roomId }, o));
    },
    get: async (room) => follow(await read("get", query(room))),
    list: (query) => read("list", query),
    mine: async () => Promise.all((await read("list", { mine: true, limit: maxSubscriptions })).items.map(follow)),
    async quick(input, o) {
      check(input);
      const { entryTokenId, roomEntry = 0, maxPlayers, settlement } = input;
      const { items } = await read("list", { entryTokenId, hasSeat: true, limit: 100 });
      const fits = (room: RoomData) => room.maxPlayers === maxPlayers && +room.roomEntry === +roomEntry &&
        !room.isFriendsOnly && (settlement || room.settlement) === room.settlement;
      for (const room of items.filter(fits).slice(0, maxCandidates)) {
        try {
          return await rooms.join(room.roomId, { signal: o?.signal });
        } catch (e) {
          if (!isRefusal(e)) throw e; // else somebody was faster, or it is not open to all
        }
      }
      return rooms.create(input, o);
    },
  };

  return {
    rooms,
    onEvent,
    onUp() {
      subscribe([...known.values()]);
      outbox.flush();
    },
    close() {
      known.forEach(forget);
    },
  };
}
