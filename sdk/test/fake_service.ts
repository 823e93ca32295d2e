// A service in this process with faults on request: it loses requests, replies and events, repeats
// events, closes sockets and forgets history. It is written from the wire contract, not from the SDK.

export interface FakeRoom {
  state: any;
  log: any[];
  /** The state after each event, by seq, as JSON. */
  /** What the room was, by position. */
  history: Map<string, string>;
  /** Ends the positions of the history that the service has now. */
  nonce: string;
  /** The seq of the oldest event that can be resumed after. */
  oldest: number;
  shared: { version: number; value: Record<string, any> };
}

type Fault = "request" | "reply" | undefined;

const base64 = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A web storage in memory, which two clients may share as two tabs do. */
export class MemoryStorage implements Storage {
  readonly map = new Map<string, string>();
  get length() { return this.map.size; }
  clear() { this.map.clear(); }
  key(i: number) { return [...this.map.keys()][i] ?? null; }
  getItem(key: string) { return this.map.get(key) ?? null; }
  setItem(key: string, value: string) { this.map.set(key, value); }
  removeItem(key: string) { this.map.delete(key); }
}

export class FakeService {
  readonly base = "https://api.example";
  readonly calls: { method: string; path: string; key?: string; body: any; status?: number }[] = [];
  readonly sockets = new Set<any>();
  readonly rooms = new Map<string, FakeRoom>();
  readonly charges = new Map<string, number>(); // by key
  readonly saves = new Map<string, { version: number; state: any }>();
  readonly savedIds = new Map<string, any>();
  readonly messages: any[] = [];
  readonly frames: any[] = [];
  readonly seenSecrets = new Map<string, any>();
  tokenLifeMs = 900_000;
  clockAheadMs = 0;
  reachable = true;
  refreshes = 0;
  /** The reply to user.subscribe; undefined: an error, as of a node without the store. */
  userStart?: { mode: string; position: { money: string; progress: string }; read?: string[] };
  snapshots = 0;
  buyRefusal: any;
  /** Decides about the next HTTP call: lose the request, or its reply. */
  fault: (method: string, path: string) => Fault = () => undefined;
  /** Whether a frame is lost with the connection, before it had its effect or after. */
  loseFrame: (type: string) => "before" | "after" | undefined = () => undefined;
  failure: (method: string, path: string) => any = () => undefined;
  /** Why a frame is refused, or a room that it names. */
  refusal: (type: string, roomId?: string) => [status: number, code: string] | undefined = () => undefined;
  private readonly tickets = new Map<string, number>();
  private readonly refreshTokens = new Map<string, number>();
  private readonly sessions = new Set<string>();
  private readonly answers = new Map<string, { status: number; body?: any }>();
  private readonly users = new Map<number, any>();
  private ids = 0;

  now() { return Date.now() + this.clockAheadMs; }

  id() { return ++this.ids; }

  private problem(status: number, code: string, more: object = {}) {
    const retryable = status === 503 || status === 429 || code === "request_in_progress";
    return { status, body: {
      type: `/docs/errors/${code}`, title: code, status, detail: code, instance: "/", code, requestId: "r", retryable,
      ...more,
    } };
  }

  private session(user: any, status: number) {
    const iat = Math.floor(this.now() / 1000);
    const claims = { sub: String(user.id), iat, exp: iat + this.tokenLifeMs / 1000, n: this.id() };
    const accessToken = `${base64({ alg: "none" })}.${base64(claims)}.x`;
    const refreshToken = `refresh-${this.id()}`;
    this.sessions.add(accessToken);
    this.refreshTokens.set(refreshToken, user.id);
    return { status, body: { accessToken, expiresIn: this.tokenLifeMs / 1000, refreshToken, user } };
  }

  newUser(username = "Ann") {
    const user = { id: this.id(), username, avatar: null };
    this.users.set(user.id, user);
    return user;
  }

  tokenFor(user: any): string { return this.session(user, 200).body.accessToken; }

  endSessions() {
    this.sessions.clear();
    for (const s of [...this.sockets]) s.end(4001, "the session was ended");
  }

  private userOf(authorization = ""): any {
    const token = authorization.replace("Bearer ", "");
    if (!this.sessions.has(token)) return undefined;
    const claims = JSON.parse(Buffer.from(token.split(".")[1], "base64url").toString());
    return claims.exp * 1000 > this.now() ? this.users.get(Number(claims.sub)) : undefined;
  }

  readonly fetch: any = async (address: string, init: any = {}) => {
    const url = new URL(address);
    const path = url.pathname.replace("/api/v1/", "");
    const { method = "GET", headers = {} } = init;
    const call: any = { method, path, key: headers["Idempotency-Key"], body: init.body && JSON.parse(init.body) };
    this.calls.push(call);
    await new Promise((resolve, reject) => {
      setTimeout(resolve, 5);
      init.signal?.addEventListener("abort", () => reject(new Error("aborted")));
    });
    const fault = this.fault(method, path);
    if (!this.reachable || fault === "request") throw new TypeError("fetch failed");
    const answer = this.failure(method, path) ?? this.keyed(call, url, headers);
    call.status = answer.status;
    await new Promise((resolve) => setTimeout(resolve, 5));
    if (!this.reachable || fault === "reply") throw new TypeError("fetch failed");
    const text = answer.body === undefined ? "" : JSON.stringify(answer.body);
    const response = {
      ok: answer.status < 400, status: answer.status, text: async () => text, clone: () => response,
      headers: { get: (name: string) => (name === "Retry-After" ? answer.retryAfter ?? null : null) },
    };
    return response;
  };

  private keyed(call: any, url: URL, headers: any) {
    const user = this.userOf(headers.Authorization);
    const name = call.key && `${user?.id ?? "anyone"} ${call.key}`;
    const first = name && this.answers.get(name);
    if (first) return first;
    const answer = this.route(call, url, user);
    if (name && answer.status < 500 && answer.status !== 401) this.answers.set(name, answer);
    return answer;
  }

  private route(
    { method, path, key, body }: any, url: URL, user: any,
  ): { status: number; body?: any; retryAfter?: string } {
    const ok = (value?: any, status = value === undefined ? 204 : 200) => ({ status, body: value });
    if (path === "auth/guest") {
      let known = this.seenSecrets.get(body.deviceSecret);
      if (!known) this.seenSecrets.set(body.deviceSecret, (known = this.newUser(body.username)));
      return this.session(known, 201);
    }
    if (path === "auth/refresh") {
      this.refreshes++;
      const id = this.refreshTokens.get(body.refreshToken);
      if (!id) return this.problem(401, "refresh_reused");
      this.refreshTokens.delete(body.refreshToken);
      return this.session(this.users.get(id), 200);
    }
    if (path === "auth/logout") return ok();
    if (!user) return this.problem(401, "unauthenticated");
    const roomOf = () => this.rooms.get(body?.roomId ?? url.searchParams.get("roomId"));
    const page = (items: any[]) => ok({ items, nextCursor: null });
    switch (`${method} ${path}`) {
      case "POST auth/ticket": {
        const ticket = `ticket-${this.id()}`;
        this.tickets.set(ticket, user.id);
        return ok({ ticket, expiresIn: 60 });
      }
      case "GET me": return ok({ ...user, kind: "guest", gameId: 1, createdAt: "" });
      case "PATCH me": return ok(Object.assign(user, body));
      case "DELETE me": return ok();
      case "GET user-balance/token-balances": return ok({ balances: [this.balance()], asOf: this.time() });
      case "POST game-session/create": return ok(this.view(this.createRoom(user, body)), 201);
      case "GET game-session/get": return roomOf() ? ok(this.view(roomOf()!)) : this.problem(404, "room_not_found");
      case "GET game-session/list": return page([...this.rooms.values()].map((r) => this.view(r)));
      case "POST game-session/join": {
        const room = roomOf();
        if (!room) return this.problem(404, "room_not_found");
        if (room.state.participants.some((p: any) => p.id === user.id)) return ok(this.view(room));
        if (room.state.participants.length >= room.state.maxPlayers) return this.problem(409, "room_full");
        this.join(room, user);
        return ok(this.view(room));
      }
      case "POST game-session/start": {
        this.start(roomOf()!);
        return ok(this.view(roomOf()!));
      }
      case "POST game-session/ready": {
        this.ready(roomOf()!, user.id, body.ready);
        return ok(this.view(roomOf()!));
      }
      case "POST game-session/leave": {
        this.leave(roomOf()!, user.id);
        return ok(this.view(roomOf()!));
      }
    }
    if (path.startsWith("user-assets/add/")) {
      if (this.buyRefusal) return this.problem(402, "insufficient_funds", this.buyRefusal);
      this.charges.set(key, (this.charges.get(key) ?? 0) + 1);
      const entryToken = { id: 1, tokenId: "GOLD", tokenName: "Gold", metadata: { decimals: "2" } };
      return ok({ purchaseId: this.id(), quantity: body.quantity, price: 2.5, entryToken }, 201);
    }
    return this.problem(404, "not_found");
  }

  balance() {
    return {
      id: 1, tokenId: "GOLD", tokenName: "Gold", logoUrl: null,
      metadata: { assetName: "", policyId: "", decimals: "2" },
      volume: 7.5, amount: "750", held: 0, heldAmount: "0",
    };
  }

  time() { return new Date(this.now()).toISOString(); }

  // Rooms.

  createRoom(user: any, settings: any = { maxPlayers: 4 }): FakeRoom {
    const roomId = `room-${this.id()}`;
    const at = this.time();
    const state = {
      id: this.id(), roomId, gameId: 1, entryToken: null, roomEntry: 0, totalWager: 0, totalWagerAmount: "0",
      creator: user,
      participants: [user], maxPlayers: settings.maxPlayers, isFriendsOnly: false, status: "CREATED", createdAt: at,
      version: 0, seq: 0, minPlayers: 1, metadata: {}, startedAt: null, finishedAt: null, settlement: "server",
      host: user,
      seats: [{ userId: user.id, state: "active", ready: false, joinedAt: at }], position: "0-0", rematchRoomId: null,
    };
    const shared = { version: 0, value: {} };
    const room: FakeRoom = { state, log: [], history: new Map(), nonce: "n", oldest: 0, shared };
    this.rooms.set(roomId, room);
    this.happen(room, "room.created", { creator: user, participantCount: 1 }, () => {});
    return room;
  }

  view(room: FakeRoom) { return JSON.parse(JSON.stringify(room.state)); }

  /** Changes a room and tells its subscribers, in one step. `deliver` decides what they hear of it. */
  private happen(room: FakeRoom, type: string, data: any, change: (s: any, at: string) => void, deliver = [1]) {
    const s = room.state;
    const at = this.time();
    change(s, at);
    const isPresence = type.endsWith("connected"); // which leaves the version as it is
    if (!isPresence) s.version++;
    s.seq++;
    s.position = `${s.seq}-${room.nonce}`;
    const { roomId, seq, position, version } = s;
    const event = { type, roomId, seq, position, at, data: isPresence ? data : { ...data, version } };
    room.log.push(event);
    room.history.set(s.position, JSON.stringify(this.view(room)));
    for (const socket of this.sockets) for (const times of deliver) socket.hear(room, event, times);
  }

  /** Undoes the last events, as a failover does, and shows subscribers what is left. */
  undo(room: FakeRoom, n: number) {
    room.log.length = Math.max(1, room.log.length - n);
    const { seq, position } = room.log.at(-1);
    room.state = JSON.parse(room.history.get(position)!);
    room.oldest = Math.min(room.oldest, seq);
    room.nonce += "n";
    for (const socket of this.sockets) {
      if (!socket.rooms.has(room.state.roomId)) continue;
      this.snapshots++;
      socket.say({ type: "room.snapshot", roomId: room.state.roomId, seq, position, at: this.time(),
        data: { mode: "snapshot", room: this.view(room), position } });
    }
  }

  join(room: FakeRoom, user: any, deliver?: number[]) {
    this.happen(room, "room.joined", { user, participantCount: 0, totalWager: 0, totalWagerAmount: "0" }, (s, at) => {
      s.participants.push(user);
      s.seats.push({ userId: user.id, state: "active", ready: false, joinedAt: at });
      s.presence?.push({ userId: user.id, connected: false });
    }, deliver);
  }

  leave(room: FakeRoom, userId: number, deliver?: number[]) {
    const forfeits = room.state.status === "STARTED";
    this.happen(room, "room.left", { userId, reason: forfeits ? "forfeited" : "left" }, (s) => {
      s.participants = s.participants.filter((u: any) => u.id !== userId);
      if (forfeits) s.seats.find((x: any) => x.userId === userId).state = "forfeited";
      else s.seats = s.seats.filter((x: any) => x.userId !== userId);
      s.presence = s.presence?.filter((p: any) => p.userId !== userId);
    }, deliver);
    if (room.state.turn?.userId === userId) this.giveTurn(room, room.state.participants[0].id, deliver, "left");
  }

  /** A player's first socket follows the room; with graceUntil, the last one is gone. */
  connect(room: FakeRoom, userId: number, graceUntil?: string, deliver?: number[]) {
    const more = graceUntil ? { graceUntil } : {};
    this.happen(room, graceUntil ? "room.disconnected" : "room.connected", { userId, ...more }, (s) => {
      s.presence ??= s.participants.map((u: any) => ({ userId: u.id, connected: false }));
      const i = s.presence.findIndex((p: any) => p.userId === userId);
      s.presence[i] = { userId, connected: !graceUntil, ...more };
    }, deliver);
  }

  giveTurn(room: FakeRoom, userId: number | null, deliver?: number[], reason = "set") {
    const deadline = userId && new Date(this.now() + 30_000).toISOString();
    this.happen(room, "room.turn", { userId, deadline, reason }, (s) => {
      s.turn = userId ? { userId, deadline } : undefined;
    }, deliver);
  }

  /** Ends a room, which has no turn and no presence from then on. */
  finish(room: FakeRoom, deliver?: number[]) {
    this.happen(room, "room.finished", { payouts: [] }, (s, at) => {
      s.status = "FINISHED";
      s.finishedAt = at;
      s.turn = s.presence = undefined;
    }, deliver);
  }

  ready(room: FakeRoom, userId: number, ready: boolean, deliver?: number[]) {
    this.happen(room, "room.ready", { userId, ready }, (s) => {
      s.seats.find((x: any) => x.userId === userId).ready = ready;
    }, deliver);
  }

  start(room: FakeRoom, deliver?: number[]) {
    this.happen(room, "room.started", { by: "host", startedAt: this.time() }, (s, at) => {
      s.status = "STARTED";
      s.startedAt = at;
    }, deliver);
  }

  /** Sends an event that is not numbered to all subscribers of a room. */
  tell(room: FakeRoom, type: string, data: any) {
    for (const s of this.sockets) {
      if (s.rooms.has(room.state.roomId)) s.say({ type, roomId: room.state.roomId, at: this.time(), data });
    }
  }

  tellUser(type: string, seq: number, data: any, nonce = "u") {
    for (const s of this.sockets) s.say({ type, seq, position: `${seq}-${nonce}`, at: this.time(), data });
  }

  // Sockets.

  get WebSocket(): any {
    const service = this;
    return class FakeSocket {
      static count = 0;
      onopen?: () => void;
      onmessage?: (e: any) => void;
      onclose?: (e: any) => void;
      onerror?: () => void;
      bufferedAmount = 0;
      rooms = new Set<string>();
      userId = 0;
      ended = false;
      path: string;

      constructor(address: string) {
        const url = new URL(address);
        this.path = url.pathname.replace("/api/v1/", "");
        const ticket = url.searchParams.get("ticket")!;
        setTimeout(() => {
          const userId = service.tickets.get(ticket);
          service.tickets.delete(ticket);
          if (!service.reachable || !userId || url.searchParams.get("protocol") !== "1") return this.end(1006);
          this.userId = userId;
          service.sockets.add(this);
          this.onopen?.();
          if (this.path === "realtime") {
            this.say({ type: "hello", at: service.time(), data: {
              connectionId: "c", userId, serverTime: service.time(), protocol: 1, limits: {},
            } });
          }
        }, 5);
      }

      /** Sends a frame; those of one socket arrive in order. */
      say(frame: any) {
        const data = JSON.stringify(frame);
        setTimeout(() => this.ended || this.onmessage?.({ data }), 5);
      }

      hear(room: FakeRoom, event: any, times: number) {
        if (!this.rooms.has(event.roomId)) return;
        if (times > 0) for (let i = 0; i < times; i++) this.say(i % 2 ? [event] : event);
        else if (times < 0) this.say(room.log[Math.max(0, event.seq - 1 + times)]); // an old one again
      }

      end(code: number, reason = "") {
        if (this.ended) return;
        this.ended = true;
        service.sockets.delete(this);
        setTimeout(() => this.onclose?.({ code, reason }), 1);
      }

      close() { this.end(1000); }

      send(text: string) {
        if (this.ended) throw new Error("closed");
        const frame = JSON.parse(text);
        service.frames.push(frame);
        setTimeout(() => this.ended || this.handle(frame), 5);
      }

      /** Returns how the subscription to a room begins, and the events that follow the reply. */
      subscribe({ roomId, after }: any) {
        const room = service.rooms.get(roomId);
        const refused = service.refusal("room.subscribe", roomId) ?? (!room && [404, "room_not_found"] as const);
        if (refused) return { outcome: { roomId, error: service.problem(...refused).body } };
        this.rooms.add(roomId);
        const seq = after ? parseInt(after) : -1;
        const missed = room!.log.slice(seq);
        const isKnown = room!.log[seq - 1]?.position === after; // else a failover has undone it
        if (isKnown && seq >= room!.oldest) return { outcome: { roomId, mode: "resume", position: after }, missed };
        service.snapshots++;
        const view = service.view(room!);
        const shared = { ...room!.shared };
        return { outcome: { roomId, mode: "snapshot", position: view.position, room: { ...view, shared } } };
      }

      handle({ id, type, data }: any) {
        const lost = service.loseFrame(type);
        if (lost === "before") return this.end(1006);
        if (lost) setTimeout(() => this.end(1006)); // before its reply arrives
        const reply = (value: any) => this.say({ replyTo: id, ok: true, data: value });
        const refuse = (status: number, code: string, more?: object) =>
          this.say({ replyTo: id ?? null, ok: false, error: service.problem(status, code, more).body });
        const refused = service.refusal(type);
        if (refused) return refuse(...refused);
        const room = service.rooms.get(data?.roomId);
        if (type === "room.subscribe") {
          if (!(data.rooms?.length <= 32)) return refuse(400, "invalid_request");
          const outcomes = data.rooms.map((start: any) => this.subscribe(start));
          reply({ rooms: outcomes.map((o: any) => o.outcome) });
          for (const { missed = [] } of outcomes) for (const event of missed) this.say(event);
        } else if (type === "user.subscribe" && service.userStart) {
          reply(service.userStart);
        } else if (type === "room.unsubscribe") {
          this.rooms.delete(data.roomId);
          reply({});
        } else if (type === "room.send") {
          service.messages.push({ ...data, from: this.userId });
          if (id) reply({});
        } else if (type === "room.state.set") {
          const { shared } = room!;
          if (data.version !== shared.version) return refuse(409, "version_conflict", { current: { ...shared } });
          shared.version++;
          Object.assign(shared.value, data.patch);
          for (const member of data.delete ?? []) delete shared.value[member];
          service.tell(room!, "room.state", { version: shared.version, patch: data.patch, delete: data.delete ?? [] });
          reply({ version: shared.version });
        } else if (type === "save") {
          const known = service.savedIds.get(id);
          if (known) return reply(known);
          const old = service.saves.get(data.slot);
          if ((old?.version ?? 0) !== data.version) {
            const current = { slot: data.slot, ...old, savedAt: service.time(), size: 2 };
            return refuse(409, "version_conflict", { current });
          }
          const saved = { slot: data.slot, version: data.version + 1, savedAt: service.time(), size: 2 };
          service.saves.set(data.slot, { version: saved.version, state: data.state });
          service.savedIds.set(id, saved);
          reply(saved);
        } else if (type === "load") {
          const old = service.saves.get(data.slot);
          if (!old) return refuse(404, "slot_not_found");
          reply({ slot: data.slot, ...old, savedAt: service.time(), size: 2 });
        } else {
          refuse(400, "invalid_request");
        }
      }
    };
  }
}
