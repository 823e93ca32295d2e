import type { Context } from "../context.js";
import { isRefusal, ParlorError, problemError } from "../errors.js";
import { createHttp, queryString } from "../http.js";
import { deferred, jitter, sleep } from "../random.js";
import type { ServerOptions } from "./types.js";

const helloTimeoutMs = 10_000;
const replyTimeoutMs = 10_000;
const messageWaitMs = 10_000; // for a connection
const calmMs = 5000; // after which a connection counts as good
const silenceMs = 30_000; // after which the connection is probed
const probeMs = 5000;
const framesPerSecond = 1800; // the service closes at 2,000
const endings: Record<number, "forbidden" | "protocol_too_old"> = { 4403: "forbidden", 4426: "protocol_too_old" };

interface Handlers {
  /** Called after hello, before anything else is sent. The connection counts as up when it has resolved. */
  onHello(): Promise<void>;
  /** Called for each frame but replies. `answer` sends a frame on this very connection, or nothing. */
  onFrame(frame: any, answer: (frame: object) => void): void;
  onUp(): void;
  onDown(): void;
  /** Called once, when the first attempts find no node. */
  onTrouble(e: Error): void;
  /** Called when the service refuses this server for good. */
  onEnd(e: Error): void;
  /** Reports whether there is more to do than a new connection should add to. */
  isBehind(): boolean;
}

interface Waiting {
  resolve(data: any): void;
  reject(e: Error): void;
  timer: any;
}

/** Returns the constructor of WebSockets. */
async function findWebSocket(given: any): Promise<typeof WebSocket> {
  if (given || globalThis.WebSocket) return given || globalThis.WebSocket;
  try {
    return (await import("ws" as string)).default;
  } catch {
    throw new TypeError("Node 20 has no WebSocket: npm install ws, or use Node 22");
  }
}

/** A socket of a game's server, which comes back by itself, and the HTTP interface beside it. */
export function createConnection(base: string, options: ServerOptions, handlers: Handlers) {
  const c = {
    base, options: { fetch: options.fetch }, state: "online", syncClock() {},
    session: { freshToken: async () => options.key, refuse() {} },
  } as unknown as Context;
  const http = createHttp(c);
  const waiting = new Map<string, Waiting>();
  const queue: string[] = []; // what the rate does not allow yet
  let up = deferred<void>();
  let ws: WebSocket | undefined; // from hello on
  let isUp = false;
  let wasUp = false;
  let isOver = false;
  let nextId = 1;
  let permits = framesPerSecond;
  let permitsAt = 0;
  let flushTimer: any;
  let drop = () => {}; // ends the connection, or the attempt
  let wake = () => {}; // ends the pause before the next one

  up.whenDone().catch(() => {});

  function flush() {
    clearTimeout(flushTimer);
    const now = Date.now();
    permits = Math.min(framesPerSecond, permits + (now - permitsAt) / 1000 * framesPerSecond);
    permitsAt = now;
    while (ws && queue.length && permits >= 1) {
      permits--;
      ws.send(queue.shift()!);
    }
    if (queue.length) flushTimer = setTimeout(flush, 10);
  }

  function transmit(frame: object) {
    queue.push(JSON.stringify(frame));
    flush();
  }

  function settle(id: string): Waiting | undefined {
    const call = waiting.get(id);
    clearTimeout(call?.timer);
    waiting.delete(id);
    return call;
  }

  /** Sends a request once, and resolves with the data of its reply. Rejects with offline, timeout or the error of the reply. */
  const ask = (type: string, data: object, key?: string) => new Promise<any>((resolve, reject) => {
    if (!ws) throw new ParlorError("offline");
    const id = `${nextId++}`;
    const timer = setTimeout(() => {
      settle(id)?.reject(new ParlorError("timeout"));
      drop(); // the reply is lost: so is the connection
    }, replyTimeoutMs);
    waiting.set(id, { resolve, reject, timer });
    transmit({ id, type, key, data });
  });

  function receive(text: string, own: WebSocket) {
    let frames: any;
    try {
      frames = JSON.parse(text);
    } catch {
      return; // not of this protocol
    }
    for (const frame of Array.isArray(frames) ? frames : [frames]) {
      if (own !== ws && frame.type !== "hello") return; // of a connection that has ended
      if ("replyTo" in frame) {
        const call = settle(frame.replyTo);
        if (frame.error) call?.reject(problemError(base, frame.error, frame.error.retryAfterSeconds));
        else call?.resolve(frame.data);
      } else if (frame.type === "hello") {
        ws = own;
        handlers.onHello().then(() => {
          if (own !== ws) return;
          isUp = wasUp = true;
          up.resolve();
          handlers.onUp();
        }, (e) => {
          if (isRefusal(e)) end(e);
          else drop();
        });
      } else {
        handlers.onFrame(frame, (answer) => own === ws && transmit(answer));
      }
    }
  }

  /** Connects once. Resolves when the connection has ended, with the pause that the node wishes, in ms. */
  async function connect(): Promise<number> {
    const Socket = await findWebSocket(options.WebSocket);
    const { ticket } = await http("auth/ticket", { method: "POST", idempotencyKey: "", retries: 0 });
    if (isOver) return 0;
    const address = base.replace(/^http/, "ws") + "/api/v1/realtime" + queryString({ protocol: 1, ticket });
    const own = new Socket(address);
    let reconnectAt = 0; // by the hint of a node that stops
    let lifeTimer: any;
    let drainTimer: any;
    return new Promise((resolve, reject) => {
      function down(code?: number, reason?: string) {
        clearTimeout(lifeTimer);
        clearTimeout(drainTimer);
        clearTimeout(flushTimer);
        own.onopen = own.onmessage = own.onclose = null;
        own.close();
        if (ws === own) ws = undefined;
        queue.length = 0;
        for (const id of [...waiting.keys()]) settle(id)!.reject(new ParlorError("offline"));
        if (isUp) {
          isUp = false;
          up = deferred();
          up.whenDone().catch(() => {});
          handlers.onDown();
        }
        if (endings[code!]) reject(new ParlorError(endings[code!], reason, { status: code, docs: `${base}/docs/close/${code}` }));
        else resolve(Math.max(0, reconnectAt - Date.now()));
      }
      const unlessAlive = (ms: number, f: () => void) => {
        clearTimeout(lifeTimer);
        lifeTimer = setTimeout(f, ms);
      };
      const probe = () => {
        own.send('{"id":"ping"}'); // every reply will do, also that a type is missing
        unlessAlive(probeMs, drop);
      };
      drop = () => down();
      unlessAlive(helloTimeoutMs, drop);
      own.onerror = () => {};
      own.onclose = (e) => down(e.code, e.reason);
      own.onmessage = ({ data }) => {
        receive(String(data), own);
        if (ws !== own) return;
        unlessAlive(silenceMs, probe);
        if (handlers.isBehind()) drop(); // what follows is asked for again
      };
      drainAt = (ms) => {
        reconnectAt = Date.now() + ms;
        drainTimer = setTimeout(drop, ms);
      };
    });
  }
  let drainAt: (ms: number) => void = () => {};

  function end(e: Error) {
    close(e);
    handlers.onEnd(e);
  }

  const pauseFor = (ms: number) => new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    wake = () => {
      clearTimeout(timer); // or it would keep the process alive
      resolve();
    };
  });

  async function run() {
    for (let attempt = 0; !isOver; attempt++) {
      while (handlers.isBehind() && !isOver) await pauseFor(jitter(0));
      const begin = Date.now();
      let pause = 0;
      try {
        pause = await connect();
      } catch (e: any) {
        if (isRefusal(e) || e instanceof TypeError) return end(e);
        pause = e.retryAfterMs;
        if (attempt === 1 && !wasUp) handlers.onTrouble(new ParlorError("offline", `${base} does not answer; trying again`));
      }
      if (Date.now() - begin > calmMs) attempt = 0;
      if (!isOver) await pauseFor(pause || jitter(attempt));
    }
  }

  function close(e: Error = new ParlorError("closed")) {
    if (isOver) return;
    isOver = true;
    c.state = "closed";
    wake();
    drop();
    up.reject(e); // that of the next connection, which will not be
  }

  /** Waits for a connection, for some time. */
  function whenUpWithin(ms: number): Promise<void> {
    let timer: any;
    const late = new Promise<never>((_, reject) => { timer = setTimeout(reject, ms, new ParlorError("offline")); });
    return Promise.race([up.whenDone(), late]).finally(() => clearTimeout(timer));
  }

  return {
    http, ask, drop: () => drop(), close,
    /** Follows the hint of a node that stops in `ms`. */
    drain: (ms: number) => drainAt(ms),
    start: () => void run(),
    /** Sends a request with a key, again and again, until it is answered. */
    async change(type: string, data: object, key: string): Promise<any> {
      for (let n = 0; ;) {
        await up.whenDone();
        try {
          return await ask(type, data, key);
        } catch (e: any) {
          if (!e.retryable) throw e;
          if (e.code !== "offline") await sleep(e.retryAfterMs || jitter(n++));
        }
      }
    },
    /** Sends a request without a key, once. */
    async tell(type: string, data: object): Promise<void> {
      await whenUpWithin(messageWaitMs);
      await ask(type, data);
    },
  };
}
