import type { Context } from "./context.js";
import { createEmitter, listen } from "./emitter.js";
import { isRefusal, ParlorError } from "./errors.js";
import { createHttp, isOffline } from "./http.js";
import { createAccount, createFriends } from "./people.js";
import { createProgress } from "./progress.js";
import { deferred } from "./random.js";
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
  let clockOffset: number | undefined; // of the service, in ms
  let wasOnline = false;
  const outcome = deferred<Parlor>();
  const ready = outcome.whenDone();
  ready.catch(() => {}); // it is reported on the console as well

  const c = {
    options, base, state: "idle", user: null, reportError: report, fail,
    prefix: `parlor:${base}:${options.gameId}`,
    shelf: openStorage(options.storage),
    emit: emitter.emit,
    time: () => Date.now() + (clockOffset || 0),
    syncClock(ms, exact) {
      const offset = ms - Date.now();
      // What was written earlier only shows that the service's clock is not behind it.
      if (exact || offset > (clockOffset ?? -Infinity)) clockOffset = offset;
    },
    onUser({ id, username, avatar }: User) {
      const user = { id, username, avatar };
      if (JSON.stringify(c.user) === JSON.stringify(user)) return;
      c.user = user;
      positions = {};
      c.shelf.isPersistent().then((is) => emitter.emit("user", { user, persistent: is || !!options.getToken }));
    },
  } as Context;
  c.http = createHttp(c);
  c.session = createSession(c);

  // The player's own events: two numberings, one of money and one of saves.
  let positions: Record<string, string> = {}; // "<seq>-<nonce>" of the last event, by stream

  const { rooms, ...roomEvents } = createRooms(c);
  const { progress, ...saves } = createProgress(c);
  const { wallet, ...balances } = createWallet(c);
  const { store, ...purchases } = createStore(c, balances.note);

  function report(e: any) {
    // What forbids this page is on the console in any case: it is for who wrote the page.
    if (!emitter.emit("error", e) || e.code === "forbidden") console.error(e);
  }

  function setState(state: Context["state"]) {
    if (c.state === state || c.state === "closed") return;
    c.state = state;
    emitter.emit("state", state);
  }

  const lost = () => setState(isOffline() ? "offline" : wasOnline ? "reconnecting" : "connecting");

  c.socket = createSocket(c, "realtime", {
    onUp() {
      const first = !wasOnline;
      wasOnline = true;
      setState("online");
      roomEvents.onUp();
      if (!first) resumeUserEvents();
      else {
        delete parlor.then; // so that `ready` can settle with the client itself
        outcome.resolve(parlor);
        saves.catchUp().catch(report);
      }
      purchases.catchUp().catch(report);
    },
    onDown: lost,
    async onFailure(e: any) {
      lost();
      const { origin } = globalThis.location || {};
      if (e.code === "offline" && origin && !isOffline() && !wasOnline && (await isThere())) {
        const call = `PATCH /api/v1/admin/games/${options.gameId} {"origins": ["${origin}"]}`;
        return fail(new ParlorError("forbidden", `${origin} needs ${call}`));
      }
      if (isRefusal(e) && e.status !== 401) fail(e);
      else if (!e.retryable && e.code !== "closed") report(e); // such as an error of getToken
    },
    onEvent(frame) {
      if (frame.roomId) roomEvents.onEvent(frame);
      else if (/^user/.test(frame.type)) onUserEvent(frame);
      else emitter.emit(frame.type, frame); // for the entry points beside the core
    },
  });

  /**
   * Reports whether there is a service. The files of the SDK are open to every origin; other
   * responses are hidden, whatever the mode of the request.
   */
  const isThere = () =>
    (options.fetch || fetch)(`${base}/sdk/debug.v1.js`, { cache: "no-store" }).catch(() => {});

  function onUserEvent({ type, seq, position, data }: any) {
    const name = type.slice(5);
    const stream = /[sh]$/.test(name) ? "progress" : "money"; // progress and match
    // Heard already, unless it replaces events that a failover has undone.
    if (seq <= parseInt(positions[stream]) && data.reason !== "resync") return;
    if (seq) positions[stream] = position; // a message has none
    if (name === "balance") balances.note(data);
    emitter.emit(name, data);
  }

  /** Asks for the player's events since the last connection. Where they are gone it reads the balances anew. */
  function resumeUserEvents() {
    c.socket.ask("user.subscribe", { after: positions })
      .then(({ read, position }): any => {
        if (read) positions = position; // of another history, it may be lower
        return read?.[0] === "wallet" && balances.catchUp();
      }, balances.catchUp)
      .catch(() => {});
  }

  function fail(e: ParlorError) {
    if (c.state === "closed") return;
    outcome.reject(e);
    report(e);
    close();
  }

  // What tells that the network may be back, the machine was asleep, or the page will end.
  c.session.wake();
  const wake = () => {
    c.session.wake();
    c.socket.wake();
    saves.wake();
  };
  const { window, document: page } = globalThis;
  const unlisten = [
    listen(window, "online", wake),
    listen(window, "pageshow", wake),
    listen(window, "pagehide", saves.flush),
    listen(window, "offline", () => (c.socket.isUp() ? c.socket.drop() : lost())),
    listen(page, "visibilitychange", () => (page.visibilityState === "visible" ? wake() : saves.flush())),
  ];

  function close() {
    if (c.state === "closed") return;
    setState("closed");
    unlisten.forEach((off) => off());
    c.session.close();
    c.socket.close();
    saves.close();
    roomEvents.close();
    outcome.reject(new ParlorError("closed"));
    emitter.end();
    onClose();
  }

  const parlor = {
    then: ready.then.bind(ready), // `await init(…)` waits for `ready`
    ready, on: emitter.on, rooms, progress, wallet, store,
    get state() { return c.state; },
    get user() { return c.user; },
    me: () => c.http("me"),
    friends: createFriends(c),
    account: createAccount(c, close),
    time: c.time,
    close,
    get: c.http, send: c.socket.ask, // for the entry points beside the core
  } as Parlor & { then?: unknown };

  const isDebug = options.debug || /[?&]parlorDebug/.test(globalThis.location?.search);
  function start() {
    if (c.state === "closed") return;
    if (isDebug) (globalThis as any).parlorDebug?.(parlor, options);
    lost();
    c.socket.wake();
  }
  // The panel wraps the network, so it comes first. Without it, such as in a bundle, the game goes on.
  if (isDebug && page) {
    const script = page.createElement("script");
    script.src = `${base}/sdk/debug.v1.js`;
    script.onload = script.onerror = start;
    page.head.append(script);
  } else queueMicrotask(start);
  return parlor;
}
