import type { Context } from "./context.js";
import { ParlorError, problemError } from "./errors.js";
import { queryString } from "./http.js";
import { jitter } from "./random.js";

const openTimeoutMs = 10_000;
const replyTimeoutMs = 10_000;
const calmMs = 5000; // after which a connection counts as good
const silenceMs = 30_000; // after which the connection is probed
const probeMs = 5000; // how long a probe may take
const maxWaiting = 64; // requests that wait for a connection

/** A WebSocket that comes back by itself. */
export interface Socket {
  /** Whether frames can be sent. */
  isUp(): boolean;
  /** Sends a request and resolves with the data of its reply. Waits for the connection, 10 s at most. */
  ask(type: string, data: any, id?: string): Promise<any>;
  /** Sends a frame without a reply. The connection must be up. */
  send(frame: string): void;
  /** The bytes that the browser has not sent yet; undefined without a connection. */
  buffered(): number | undefined;
  /** Connects now, if not connected; else finds out whether the connection still lives. */
  wake(): void;
  /** Drops the connection and connects again later. */
  drop(): void;
  /** Ends the connection. `wake` and requests open it again. */
  rest(): void;
  close(): void;
}

interface Handlers {
  onUp?(): void;
  onDown?(): void;
  /** Called when an attempt failed before there was a socket. */
  onFailure?(e: ParlorError): void;
  onEvent?(event: any): void;
}

interface Waiting {
  frame: string;
  sent: boolean;
  resolve(data: any): void;
  reject(e: Error): void;
  timer: any;
}

/** Makes the socket of a path. The one of "realtime" begins with a frame `hello`. */
export function createSocket(c: Context, path: string, handlers: Handlers = {}): Socket {
  const isMain = path === "realtime";
  let ws: WebSocket | undefined;
  let upSince = 0; // 0 while no frame can be sent
  let wanted = false;
  let opening = false;
  let attempts = 0;
  let nextId = 1;
  let reconnectAt = 0; // by the hint of a node that stops
  let retryTimer: any;
  let lifeTimer: any; // until the connection is open, is probed, or counts as dead
  let drainTimer: any;
  const waiting = new Map<string, Waiting>();

  function settle(id: string): Waiting | undefined {
    const call = waiting.get(id);
    clearTimeout(call?.timer);
    waiting.delete(id);
    return call;
  }

  const transmit = (call: Waiting) => {
    call.sent = true;
    ws!.send(call.frame);
  };

  async function open() {
    clearTimeout(retryTimer);
    if (ws || opening || !wanted) return;
    opening = true;
    try {
      const { ticket } = await c.http("auth/ticket", { method: "POST", idempotencyKey: "", retries: 0 });
      if (!wanted) return;
      const address = c.base.replace(/^http/, "ws") + "/api/v1/" + path + queryString({ protocol: 1, ticket });
      const own: WebSocket = ws = new (c.options.WebSocket || WebSocket)(address);
      unlessAlive(openTimeoutMs, down);
      own.onopen = () => isMain || opened();
      own.onerror = () => {};
      own.onmessage = receive;
      own.onclose = (e) => down(e.code, e.reason);
    } catch (e: any) {
      retry(e);
    } finally {
      opening = false;
    }
  }

  function opened() {
    upSince = Date.now();
    reconnectAt = 0;
    unlessAlive(silenceMs, probe);
    handlers.onUp?.();
    waiting.forEach((call) => call.sent || transmit(call));
  }

  /** Handles the end of a connection, or the reason why there is none. */
  function down(code: number, reason?: string) {
    const wasUpSince = upSince;
    upSince = 0;
    clearTimeout(lifeTimer);
    clearTimeout(drainTimer);
    if (ws) {
      ws.onopen = ws.onmessage = ws.onclose = null;
      ws.close();
      ws = undefined;
    }
    waiting.forEach((call, id) => call.sent && settle(id)!.reject(new ParlorError("offline")));
    if (code === 4001) c.session.refuse(c.session.currentToken());
    if (wasUpSince) {
      if (Date.now() - wasUpSince > calmMs) attempts = 0;
      handlers.onDown?.();
    }
    const end = code === 4403 ? "forbidden" : code === 4426 && "protocol_too_old";
    if (end) c.fail(new ParlorError(end, reason, { docs: `${c.base}/docs/close/${code}` }));
    else retry();
  }

  function retry(e?: ParlorError) {
    if (!wanted) return;
    clearTimeout(retryTimer);
    const hint = Math.max(reconnectAt - Date.now(), e?.retryAfterMs || 0);
    retryTimer = setTimeout(open, hint || jitter(attempts++));
    if (e) handlers.onFailure?.(e);
  }

  function receive({ data }: MessageEvent) {
    if (upSince) unlessAlive(silenceMs, probe);
    let frames: any;
    try {
      frames = JSON.parse(data);
    } catch {
      return; // not of this protocol
    }
    for (const frame of Array.isArray(frames) ? frames : [frames]) {
      if ("replyTo" in frame) {
        const error = frame.error && problemError(c.base, frame.error);
        const call = settle(frame.replyTo);
        if (call) error ? call.reject(error) : call.resolve(frame.data);
        else if (error && frame.replyTo === null) c.reportError(error);
      } else if (frame.type === "hello") {
        c.syncClock(Date.parse(frame.data.serverTime), true);
        opened();
      } else if (/^server/.test(frame.type)) { // draining and stale
        const ms = frame.data.reconnectInMs;
        if (ms >= 0) {
          reconnectAt = Date.now() + ms;
          drainTimer = setTimeout(down, ms, 1012);
        }
        if (isMain) c.emit(frame.type.slice(7), frame.data);
      } else {
        handlers.onEvent?.(frame);
      }
    }
  }

  /** Calls `f` later, unless the connection gives a sign of life or ends before. */
  function unlessAlive(ms: number, f: (code: number) => void) {
    clearTimeout(lifeTimer);
    lifeTimer = setTimeout(f, ms, 1006);
  }

  /** Asks for a sign of life: a browser does not show pings, and a dead network is silent too. */
  function probe() {
    ws!.send('{"id":"ping"}'); // every reply will do, also that a type is missing
    unlessAlive(probeMs, down);
  }

  /** Ends the connection until it is wanted again. */
  function rest() {
    wanted = false;
    clearTimeout(retryTimer);
    if (ws) down(1000);
  }

  return {
    isUp: () => upSince > 0,
    ask: (type, data, id = `${nextId++}`) => new Promise((resolve, reject) => {
      if (c.state === "closed") throw new ParlorError("closed");
      if (waiting.size >= maxWaiting) throw new ParlorError("queue_full");
      const call: Waiting = {
        frame: JSON.stringify({ id, type, data }), sent: false, resolve, reject,
        timer: setTimeout(() => {
          settle(id);
          reject(call.sent ? new ParlorError("timeout") : new ParlorError("offline"));
          if (call.sent && upSince) down(1006); // the reply is lost: so is the connection
        }, replyTimeoutMs + (data.timeoutMs || 0)),
      };
      waiting.set(id, call);
      wanted = true;
      if (upSince) transmit(call);
      else open();
    }),
    send: (frame) => ws!.send(frame),
    buffered: () => ws?.bufferedAmount,
    wake() {
      wanted = true;
      if (upSince) probe();
      else open();
    },
    drop: () => down(1006),
    rest,
    close() {
      rest();
      waiting.forEach((call, id) => settle(id)!.reject(new ParlorError("closed")));
    },
  };
}
