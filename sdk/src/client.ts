import type { Context } from "./context.js";
import { createEmitter, listen } from "./emitter.js";
import { closed, isRefusal, ParlorError } from "./errors.js";
import { createHttp, isOffline } from "./http.js";
import { createAccount, createFriends } from "./people.js";
import { createProgress } from "./progress.js";
import { createRooms } from "./rooms.js";
import { createSession } from "./session.js";
import { createSocket } from "./socket.js";
import { openStorage } from "./storage.js";
import { createStore } from "./store.js";
import type { Options, Parlor, User } from "./types.js";
import { createWallet } from "./wallet.js";

/** Makes a client. It connects by itself from the next microtask on. */
export function createClient(options: Options, base: string, onClose: () => void): Parlor {
  const emitter = createEmitter(report);
  let clockOffset = -Infinity; // of the service, in ms
  let wasOnline = false;
  let isReady!: (p: Parlor) => void;
  let isLost!: (e: unknown) => void;
  const ready = new Promise<Parlor>((...both) => { [isReady, isLost] = both; });
  ready.catch(() => {}); // it is reported on the console as well

  const c = {
    options, base, gameId: Number(options.gameId), state: "idle", user: null, reportError: report, fail,
    prefix: `parlor:${base}:${options.gameId}`,
    shelf: Promise.resolve().then(() => openStorage(options.storage)),
    emit: emitter.emit,
    time: () => Date.now() + (isFinite(clockOffset) ? clockOffset : 0),
    syncClock(ms, exact) {
      const offset = ms - Date.now();
      // What was written earlier only shows that the service's clock is not behind it.
      if (exact || !(offset <= clockOffset || isNaN(offset))) clockOffset = offset;
    },
    onUser({ id, username, avatar }: User) {
      const user = { id, username, avatar };
      const known = JSON.stringify(c.user) === JSON.stringify(user);
      c.user = user;
      if (known) return;
      userSeqs = {};
      c.shelf.then((s) => emitter.emit("user", { user, persistent: !!options.getToken || s.persistent() }));
    },
  } as Context;
  c.http = createHttp(c);
  c.session = createSession(c);

  // The player's own events: two numberings, one of money and one of saves.
  let userSeqs: Record<string, { seq: number; position: string }> = {};

  const { rooms, ...roomEvents } = createRooms(c);
  const { progress, ...saves } = createProgress(c);
  const { wallet, ...balances } = createWallet(c);
  const { store, ...purchases } = createStore(c, balances.learn);

  function report(e: unknown) {
    if (!emitter.emit("error", e)) console.error(e);
  }

  function setState(state: Context["state"]) {
    if (c.state === state || c.state === "closed") return;
    c.state = state;
    emitter.emit("state", state);
  }

  const lost = () => setState(isOffline() ? "offline" : wasOnline ? "reconnecting" : "connecting");

  c.socket = createSocket(c, "realtime", {
    expectsHello: true,
    onUp() {
      const first = !wasOnline;
      wasOnline = true;
      setState("online");
      roomEvents.onUp();
      if (!first) resumeUserEvents();
      else {
        delete (parlor as any).then; // so that `ready` can settle with the client itself
        isReady(parlor);
        saves.recover().catch(report);
      }
      purchases.settle().catch(report);
    },
    onDown: lost,
    async onFailure(e: any) {
      lost();
      if (e.code === "offline" && !isOffline() && !wasOnline && (await isForbiddenOrigin())) {
        const call = `PATCH /api/v1/admin/games/${c.gameId} {"origins": ["${location.origin}"]}`;
        e = new ParlorError("forbidden", `the origin ${location.origin} is not allowed: ${call}`, { status: 403 });
        console.error(e.message);
      }
      if (isRefusal(e) && e.status !== 401) fail(e);
      else if (!e.retryable && e.code !== "closed") report(e); // such as an error of getToken
    },
    onEvent(frame) {
      if (frame.roomId) roomEvents.onEvent(frame);
      else if (/^user/.test(frame.type)) onUserEvent(frame);
    },
  });

  /**
   * Reports whether the service is there, and only this page may not read its answers. The files of
   * the SDK are open to every origin; other responses are hidden, whatever the mode of the request.
   */
  const isForbiddenOrigin = () =>
    (options.fetch || fetch)(`${base}/sdk/integrity.json`, { cache: "no-store" }).then(() => !!globalThis.location, () => false);

  function onUserEvent({ type, seq, position, data }: any) {
    const name = type.slice(5);
    const stream = name === "progress" ? name : "money";
    if (seq <= userSeqs[stream]?.seq) return; // heard already
    userSeqs[stream] = { seq, position };
    if (name === "balance") balances.note(data);
    emitter.emit(name, data);
  }

  /** Asks for the player's events since the last connection, or reads the balances anew. */
  async function resumeUserEvents() {
    const after: Record<string, string> = {};
    for (const stream in userSeqs) after[stream] = userSeqs[stream].position;
    await c.socket.ask("user.subscribe", { after }).catch(() => balances.catchUp()).catch(() => {});
  }

  function fail(e: ParlorError) {
    if (c.state === "closed") return;
    isLost(e);
    report(e);
    close();
  }

  // What tells that the network may be back, the machine was asleep, or the page will end.
  const freshness = c.session.keepFresh((accessToken) => {
    // A service that does not know the message closes the socket when its token expires. It comes back.
    if (c.socket.isUp()) c.socket.ask("auth.refresh", { accessToken }).catch(() => {});
  });
  const wake = () => {
    freshness.check();
    c.socket.wake();
    saves.wake();
  };
  const page = globalThis.document;
  const unlisten = [
    ...["online", "pageshow"].map((type) => listen(globalThis.window, type, wake)),
    listen(globalThis.window, "pagehide", saves.flush),
    listen(globalThis.window, "offline", () => (c.socket.isUp() ? c.socket.drop() : lost())),
    listen(page, "visibilitychange", () => (page.visibilityState === "visible" ? wake() : saves.flush())),
  ];

  function close() {
    if (c.state === "closed") return;
    setState("closed");
    unlisten.forEach((off) => off());
    freshness.stop();
    c.socket.close();
    saves.close();
    roomEvents.close();
    isLost(closed());
    emitter.end();
    onClose();
  }

  const parlor: Parlor = {
    ready, on: emitter.on, rooms, progress, wallet, store,
    get state() { return c.state; },
    get user() { return c.user; },
    friends: createFriends(c),
    account: createAccount(c, close),
    time: c.time,
    close,
  };
  // `await init(…)` waits for `ready`.
  Object.defineProperty(parlor, "then", { configurable: true, value: ready.then.bind(ready) });

  queueMicrotask(() => {
    if (c.state === "closed") return;
    lost();
    c.socket.wake();
  });
  return parlor;
}
