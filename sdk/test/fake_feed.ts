// A node for game servers in this process, over real sockets, with faults on request: it closes connections,
// repeats events, loses replies and forgets history. It is written from the wire contract, not from the SDK.
import { createServer, type IncomingMessage, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocketServer, type WebSocket } from "ws";

interface Feed {
  nonce: string;
  log: any[];
  /** How many of the log's events are gone. */
  lost: number;
}

interface Change {
  type: string;
  data: any;
}

export class FakeFeed {
  readonly key = "psk_1_key";
  readonly feeds = new Map<string, Feed>();
  readonly sockets = new Set<WebSocket>();
  readonly subscriptions: any[] = [];
  /** What verbs did, each key once. */
  readonly changes: Change[] = [];
  readonly answers: any[] = [];
  readonly sent: any[] = [];
  readonly messages: any[] = [];
  readonly rooms = new Map<string, any>();
  shared = { version: 0, value: {} as any };
  /** Decides about each frame that the node sends: close the connection before it, or send it twice. */
  fault: (type: string) => "close" | "twice" | undefined = () => undefined;
  /** Why a request is refused, or the next HTTP call. */
  refuse: (type: string) => [status: number, code: string, retryable?: boolean] | undefined = () => undefined;
  url = "";
  private readonly http: HttpServer;
  private readonly wss: WebSocketServer;
  private readonly receipts = new Map<string, any>();
  private readonly tickets = new Set<string>();
  private readonly subscribed = new Set<WebSocket>();

  constructor(names = ["e", "r0"]) {
    for (const name of names) this.feeds.set(name, { nonce: "a", log: [], lost: 0 });
    this.http = createServer((request, response) => {
      void this.serve(request).then(([status, body]) => {
        response.writeHead(status, { "Content-Type": "application/json" });
        response.end(body === undefined ? "" : JSON.stringify(body));
      });
    });
    this.wss = new WebSocketServer({ noServer: true });
    this.http.on("upgrade", (request, socket, head) => {
      const ticket = new URL(request.url!, "http://x").searchParams.get("ticket")!;
      if (!this.tickets.delete(ticket)) return void socket.destroy();
      this.wss.handleUpgrade(request, socket, head, (ws) => this.accept(ws));
    });
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => { this.http.listen(0, "127.0.0.1", resolve); });
    this.url = `http://127.0.0.1:${(this.http.address() as AddressInfo).port}`;
    return this;
  }

  async close() {
    for (const ws of this.sockets) ws.terminate();
    this.http.closeAllConnections();
    await new Promise((resolve) => { this.http.close(resolve); });
  }

  /** Ends every connection. */
  drop() {
    for (const ws of this.sockets) ws.terminate();
  }

  position(name: string, number: number): string {
    return `${number}-${this.feeds.get(name)!.nonce}`;
  }

  /** Adds an event to a feed and sends it. */
  append(name: string, type: string, roomId: string, data: object = {}) {
    const feed = this.feeds.get(name)!;
    const number = feed.log.length + 1;
    const event = {
      type, feed: name, position: this.position(name, number), roomId, seq: number, time: new Date(number).toISOString(), data,
    };
    feed.log.push(event);
    for (const ws of this.subscribed) this.say(ws, event);
    return event;
  }

  /** Calls the server as a player of a room. */
  call(roomId: string, callId: string, op: string, payload: unknown, from = 7) {
    for (const ws of this.subscribed) {
      this.say(ws, { type: "room.call", roomId, at: new Date().toISOString(), data: { callId, from, op, payload } });
    }
  }

  say(ws: WebSocket, frame: any) {
    const fault = this.fault(frame.type ?? "reply");
    if (fault === "close") return ws.terminate();
    for (let n = fault === "twice" ? 2 : 1; n > 0; n--) ws.send(JSON.stringify(n > 1 ? [frame] : frame));
  }

  sayToAll(frame: any) {
    for (const ws of this.subscribed) this.say(ws, frame);
  }

  private problem([status, code, retryable = false]: [number, string, boolean?], more: object = {}) {
    return { type: `/docs/errors/${code}`, title: code, status, detail: code, code, requestId: "r", retryable, ...more };
  }

  private async serve(request: IncomingMessage): Promise<[number, unknown?]> {
    const url = new URL(request.url!, "http://x");
    const path = url.pathname.replace("/api/v1/", "");
    let text = "";
    for await (const chunk of request) text += chunk;
    const refused = this.refuse(path) ??
      (request.headers.authorization !== `Bearer ${this.key}` && [401, "unauthenticated"] as const);
    if (refused) return [refused[0], this.problem([...refused] as any)];
    if (path === "auth/ticket") {
      const ticket = `ticket-${Math.random()}`;
      this.tickets.add(ticket);
      return [200, { ticket, expiresIn: 60 }];
    }
    if (path === "admin/rooms") {
      const fitting = [...this.rooms.values()].filter((room) => room.status === url.searchParams.get("status"));
      const from = Number(url.searchParams.get("cursor") ?? 0);
      const next = from + 2; // pages are small, so that there are several
      return [200, { items: fitting.slice(from, next), nextCursor: next < fitting.length ? String(next) : null }];
    }
    if (path === "game-session/get") return [200, this.rooms.get(url.searchParams.get("roomId")!)];
    this.messages.push({ path, ...JSON.parse(text) });
    return [202];
  }

  private accept(ws: WebSocket) {
    this.sockets.add(ws);
    ws.on("error", () => {});
    ws.on("close", () => {
      this.sockets.delete(ws);
      this.subscribed.delete(ws);
    });
    ws.on("message", (text) => this.handle(ws, JSON.parse(String(text))));
    const serverTime = new Date().toISOString();
    this.say(ws, { type: "hello", at: serverTime, data: { connectionId: "c", gameId: 1, role: "server", serverTime, protocol: 1 } });
  }

  private handle(ws: WebSocket, { id, type, key, data }: any) {
    const refuse = (...problem: Parameters<typeof this.problem>) =>
      this.say(ws, { replyTo: id ?? null, ok: false, error: this.problem(...problem) });
    const reply = (value: unknown) => this.say(ws, { replyTo: id, ok: true, data: value });
    const refused = this.refuse(type);
    if (refused) return refuse(refused);
    if (type === "game.subscribe") return this.subscribe(ws, data, reply);
    if (type === "game.unsubscribe") {
      this.subscribed.delete(ws);
      return reply({});
    }
    if (type === "room.reply") return void this.answers.push(data);
    if (type === "room.send") {
      this.sent.push(data);
      return reply({});
    }
    if (!/^room\./.test(type)) return refuse([400, "invalid_request"]);
    if (!this.receipts.has(key)) {
      if (type === "room.state.set") {
        if (data.version !== this.shared.version) return refuse([409, "version_conflict"], { current: { ...this.shared } });
        this.shared = { version: data.version + 1, value: { ...this.shared.value, ...data.patch } };
      }
      this.changes.push({ type, data });
      const version = this.shared.version;
      this.receipts.set(key, type === "room.state.set" ? { version } : { roomId: data.roomId, status: type });
    }
    reply(this.receipts.get(key));
  }

  private subscribe(ws: WebSocket, data: any, reply: (value: unknown) => void) {
    this.subscriptions.push(data);
    const { after = {} } = data;
    const position: Record<string, string> = {};
    const missed: any[] = [];
    let mode = Object.keys(after).length ? "resume" : "live";
    for (const [name, feed] of this.feeds) {
      position[name] = this.position(name, feed.log.length);
      const number = parseInt(after[name]);
      if (!(name in after)) continue;
      if (after[name] !== this.position(name, number) || number < feed.lost || number > feed.log.length) {
        mode = "gap";
        continue;
      }
      position[name] = after[name];
      missed.push(...feed.log.slice(number));
    }
    reply({ mode, position, since: {} });
    for (const event of missed) if (ws.readyState === ws.OPEN) this.say(ws, event);
    if (ws.readyState === ws.OPEN) this.subscribed.add(ws);
  }
}
