// A fetch and a WebSocket that record what goes through them, and can be slowed down, made to lose
// events, or cut like a cable.
import type { Options } from "../types.js";
import { hideSecrets, hideSecretsInQuery } from "./secrets.js";
import type { DebugCall, DebugEvent } from "./types.js";

const maxEntries = 500; // calls, and events
const maxBodyChars = 64 << 10; // a longer body is not kept
const maxRoundTrips = 20;

/** A room as the traffic shows it. */
export interface SeenRoom {
  code?: string;
  status?: string;
  /** Of the last event. Undefined while its events are not followed. */
  seq?: number;
  position?: string;
}

/** The network of one client. */
export interface Network {
  /** The address of the service, known from the first call on. */
  base: string;
  calls: DebugCall[];
  events: DebugEvent[];
  rooms: Map<string, SeenRoom>;
  /** The last ones in ms, newest last. */
  roundTrips: number[];
  /** Events lost on purpose. */
  lost: number;
  latencyMs: number;
  loss: number;
  isCut: boolean;
  isOffline: boolean;
  cut(o?: { offline?: boolean }): void;
  resume(): void;
  disconnect(): void;
  clear(): void;
  /** Bytes that the browser has not sent yet. */
  unsentBytes(): number;
  /** Calls `fn` after each change. Returns the function that stops it. */
  listen(fn: () => void): () => void;
  fetch: typeof fetch;
  WebSocket: any;
}

const size = (text: string) => new TextEncoder().encode(text).length;

/** Wraps the network of a client in its options, which the core reads for each call. */
export function watchNetwork(options: Pick<Options, "fetch" | "WebSocket">): Network {
  const Socket: typeof WebSocket = options.WebSocket || globalThis.WebSocket;
  const request = options.fetch || ((...a: [any]) => globalThis.fetch(...a));
  const open = new Set<WatchedSocket>();
  const listeners = new Set<() => void>();
  let count = 0; // of calls and events
  let cuts = 0;

  const changed = () => listeners.forEach((fn) => fn());

  function add<T>(list: T[], entry: T): T {
    if (list.push(entry) > maxEntries) list.shift();
    changed();
    return entry;
  }

  /** Returns the room with an id, also one that was not seen before. */
  function roomOf(roomId: string): SeenRoom {
    const room = network.rooms.get(roomId) || {};
    network.rooms.set(roomId, room);
    return room;
  }

  /** Returns what may be recorded of a JSON value, and learns about rooms from it. */
  const record = (value: unknown) => hideSecrets(value, ({ roomId, code, status }) => {
    if (roomId && code && status) Object.assign(roomOf(roomId), { code, status });
  });

  function recordText(text: string): unknown {
    if (!text) return undefined;
    if (text.length > maxBodyChars) return `(${text.length} characters)`;
    try {
      return record(JSON.parse(text));
    } catch {
      return text.slice(0, 1000); // of something between us and the service
    }
  }

  /** Returns a function that runs its argument late, and after those before it. */
  function createDelay() {
    const queue: (() => void)[] = [];
    return (f: () => void) => {
      if (!queue.length && !network.latencyMs) return f();
      queue.push(f);
      setTimeout(() => queue.shift()!(), network.latencyMs);
    };
  }

  async function watchedFetch(input: any, init: RequestInit = {}): Promise<Response> {
    const address: string = input.url || String(input);
    const [base, isApi] = address.split(/(?=\/api\/v1\/)/);
    if (isApi) network.base = base;
    const body = typeof init.body === "string" ? init.body : "";
    const call = add(network.calls, {
      n: ++count, at: Date.now(), kind: "http", method: init.method || "GET",
      path: hideSecretsInQuery(address.replace(network.base, "")),
      idempotencyKey: new Headers(init.headers).get("Idempotency-Key") || undefined,
      request: recordText(body), sentBytes: size(body),
    } as DebugCall);
    const began = performance.now();
    const cutsBefore = cuts;
    try {
      await new Promise<void>(createDelay());
      if (network.isCut) throw new TypeError("the network is cut");
      const response = await request(input, init);
      if (cuts !== cutsBefore) throw new TypeError("the network was cut before the reply came");
      call.status = response.status;
      call.requestId = response.headers.get("X-Request-Id") || undefined;
      const ended = () => { call.ms = Math.round(performance.now() - began); };
      ended();
      response.clone().text().then((text) => {
        ended();
        const answer: any = recordText(text);
        call.response = answer;
        call.receivedBytes = size(text);
        if (call.status! >= 400) call.code = answer?.code;
        call.requestId ||= answer?.requestId;
        changed();
      }, () => {});
      return response;
    } catch (e: any) {
      call.failure = e.message;
      throw e;
    } finally {
      changed();
    }
  }

  /** Notes where the reply to a subscription says that a room begins. */
  function noteSubscriptions({ rooms = [] }: any) {
    for (const { roomId, position, error } of rooms) {
      if (!error) Object.assign(roomOf(roomId), { position, seq: parseInt(position) || 0 });
    }
  }

  /** What the core takes for a WebSocket. Inside is one, or any object that works like one. */
  class WatchedSocket {
    onopen?: ((e: any) => void) | null;
    onerror?: ((e: any) => void) | null;
    onclose?: ((e: any) => void) | null;
    onmessage?: ((e: any) => void) | null;
    private readonly native: WebSocket;
    private readonly waiting = new Map<string, { call?: DebugCall; began: number }>(); // by id
    private readonly delayIn = createDelay();
    private readonly delayOut = createDelay();
    private isOver = false;

    constructor(address: string) {
      const native = this.native = new Socket(address);
      native.onopen = (e) => this.onopen?.(e);
      native.onerror = (e) => this.onerror?.(e);
      native.onmessage = (e) => this.receive(e);
      native.onclose = (e) => {
        this.end("the connection was lost");
        this.onclose?.(e);
      };
      open.add(this);
      if (network.isCut) this.cut();
    }

    get bufferedAmount() { return this.native.bufferedAmount; }
    get readyState() { return this.native.readyState; }

    close(code?: number, reason?: string) {
      this.isOver = true;
      this.native.close(code, reason);
    }

    private end(failure: string) {
      this.isOver = true;
      open.delete(this);
      for (const { call } of this.waiting.values()) if (call) call.failure = failure;
      this.waiting.clear();
      changed();
    }

    /** Ends it as a cut cable does: what is on its way is gone. */
    cut() {
      this.end("the network was cut");
      this.native.close();
    }

    /** Records a frame from the service. Returns whether the page gets it. */
    private hear(frame: any): boolean {
      if ("replyTo" in frame) {
        this.hearReply(frame);
        return true;
      }
      const { type, roomId, seq, position, data } = frame;
      const lost = roomId && Math.random() < network.loss ? true : undefined;
      if (lost) network.lost++;
      add(network.events, {
        n: ++count, at: Date.now(), name: type, roomId, seq, lost,
        bytes: size(JSON.stringify(frame)), data: record(data),
      });
      if (roomId && seq && !lost) {
        const room = Object.assign(roomOf(roomId), { seq, position });
        const [, status] = /^room\.(started|finished|cancelled|disputed)$/.exec(type) || [];
        if (status) room.status = status.toUpperCase();
      }
      return !lost;
    }

    private hearReply(frame: any) {
      const { replyTo, data, error } = frame;
      const { call, began } = this.waiting.get(replyTo) || {};
      if (began === undefined) return;
      this.waiting.delete(replyTo);
      const ms = Math.round(performance.now() - began);
      network.roundTrips = [...network.roundTrips, ms].slice(-maxRoundTrips);
      if (call) {
        const { status, code, requestId } = error || {};
        const receivedBytes = size(JSON.stringify(frame));
        Object.assign(call, { ms, response: record(error || data), status, code, requestId, receivedBytes });
        if (call.path === "room.subscribe" && data) noteSubscriptions(data);
      }
      changed();
    }

    private receive(e: MessageEvent) {
      if (this.isOver) return;
      let frames: any;
      try {
        frames = JSON.parse(e.data);
      } catch {
        return this.delayIn(() => this.onmessage?.(e)); // bytes
      }
      const kept = (Array.isArray(frames) ? frames : [frames]).filter((frame) => this.hear(frame));
      if (!kept.length) return;
      this.delayIn(() => this.isOver || this.onmessage?.(new MessageEvent("message", { data: JSON.stringify(kept) })));
    }

    send(message: any) {
      if (typeof message === "string") this.note(message);
      this.delayOut(() => { if (!this.isOver) this.native.send(message); });
    }

    private note(text: string) {
      const { id, type, data } = JSON.parse(text);
      const began = performance.now();
      // A probe has no type. Any reply to it is a sign of life.
      const call = type && add(network.calls, {
        n: ++count, at: Date.now(), kind: "socket", method: "", path: type, id,
        request: record(data), sentBytes: size(text),
      } as DebugCall);
      if (id) this.waiting.set(id, { call, began });
      if (type === "room.unsubscribe") roomOf(data.roomId).seq = undefined;
    }
  }

  const network: Network = {
    base: "", calls: [], events: [], rooms: new Map(), roundTrips: [], lost: 0,
    latencyMs: 0, loss: 0, isCut: false, isOffline: false,
    cut({ offline = false } = {}) {
      cuts++;
      network.isCut = true;
      open.forEach((socket) => socket.cut());
      if (offline && !network.isOffline && globalThis.navigator) {
        network.isOffline = true;
        Object.defineProperty(navigator, "onLine", { configurable: true, get: () => false });
        globalThis.dispatchEvent?.(new Event("offline"));
      }
      changed();
    },
    resume() {
      if (!network.isCut) return;
      network.isCut = false;
      if (network.isOffline) delete (navigator as any).onLine;
      network.isOffline = false;
      globalThis.dispatchEvent?.(new Event("online")); // as a browser does when its network is back
      changed();
    },
    disconnect: () => open.forEach((socket) => socket.close()),
    clear() {
      network.calls.length = network.events.length = 0;
      changed();
    },
    unsentBytes: () => [...open].reduce((sum, socket) => sum + socket.bufferedAmount, 0),
    listen(fn) {
      listeners.add(fn);
      return () => listeners.delete(fn);
    },
    fetch: watchedFetch,
    WebSocket: WatchedSocket,
  };
  options.fetch = watchedFetch;
  options.WebSocket = WatchedSocket;
  return network;
}
