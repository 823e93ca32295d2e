// The SDK for engines, which exchange texts with the page: calls, replies and events are JSON. It
// comes behind v1.js. The global is ParlorBridge; README.md describes the messages.
(() => {
  const clientEvents = [
    "state", "user", "balance", "asset", "prize", "progress", "match", "draining", "stale", "error",
  ];
  const roomEvents = [
    "joined", "left", "ready", "hostChanged", "started", "result", "disputed", "finished", "cancelled", "rematch",
    "connected", "disconnected", "state", "turn", "message", "resynced",
  ];
  const maxRooms = 16; // that a client follows at a time
  const maxQueued = 1000; // messages of players that wait for an engine which asks for them

  let client;
  let areas = {}; // of the client, by name: rooms, wallet
  let receiver; // of the engine; without one messages wait in the queue
  let queue = [];
  const rooms = new Map(); // the room and what ends its listeners, by id

  // Members whose content is the game's own.
  const isOpaque = (name) => /^(metadata|payload|patch|shared|state)$/.test(name);
  // Whether an amount stands beside in minor units too, as a text: `heldAmount`, or `amount`.
  const isExactElsewhere = (value, name) => typeof value[name] === "number" &&
    (typeof value[`${name}Amount`] === "string" ||
      (typeof value.amount === "string" && /^(volume|payout|refund|prize)$/.test(name)));

  /** Returns a value without floating-point amounts beside which the exact one stands. */
  function withoutFloats(value) {
    if (!value || typeof value !== "object") return value;
    if (Array.isArray(value)) return value.map(withoutFloats);
    return Object.fromEntries(Object.entries(value).filter(([name]) => !isExactElsewhere(value, name))
      .map(([name, member]) => [name, isOpaque(name) ? member : withoutFloats(member)]));
  }

  function deliver(target, name, value) {
    const json = JSON.stringify(value === undefined ? null : withoutFloats(value));
    if (receiver) {
      try {
        receiver(target, name, json);
      } catch (e) {
        console.error(e); // as an event it would come here again
      }
      return;
    }
    const isMessage = (one) => one.name === "message" && one.target;
    if (queue.length >= maxQueued) {
      const oldest = queue.findIndex(isMessage); // messages are sent at most once, events are not lost
      if (oldest >= 0) queue.splice(oldest, 1);
    }
    queue.push({ target, name, json });
  }

  const problem = ({ code = "bad_call", message, detail = message, status = 0, retryable = false, data = {} }) =>
    ({ code, detail, status, retryable, data });

  const fieldsOf = (room) => ({ ...room, shared: room.shared.value });
  const isRoom = (value) => !!value && typeof value.send === "function" && typeof value.roomId === "string";

  function release(roomId) {
    rooms.get(roomId)?.listening.abort();
    rooms.delete(roomId);
  }

  /** Sends the events of a room to the engine from now on. Returns the fields of the room. */
  function follow(room) {
    const { roomId } = room;
    if (rooms.get(roomId)?.room !== room) {
      release(roomId);
      for (const [id, one] of rooms) if (rooms.size >= maxRooms && one.room.finishedAt) release(id);
      const listening = new AbortController();
      rooms.set(roomId, { room, listening });
      for (const name of roomEvents) {
        room.on(name, (e) => deliver(roomId, name, name === "message" ? e : { ...e, room: fieldsOf(room) }), listening);
      }
    }
    return fieldsOf(room);
  }

  const reply = (value) => isRoom(value) ? follow(value) : Array.isArray(value) ? value.map(reply) : value;

  function run(method, args) {
    const names = method.split(".");
    const name = names.pop();
    if (names[0] !== "room") {
      const area = areas[names.join(".")];
      if (typeof area?.[name] !== "function") throw new TypeError(`there is no ${method}`);
      return area[name](...args);
    }
    const [roomId, ...rest] = args;
    if (method === "room.release") return release(roomId);
    const room = rooms.get(roomId)?.room;
    if (!room) throw new TypeError(`the room ${roomId} is not followed: get it by rooms.get`);
    const target = names[1] === "shared" ? room.shared : room;
    const isMethod = typeof target[name] === "function" && !/^(on|once|events)$/.test(name);
    if (!isMethod) throw new TypeError(`there is no ${method}`);
    return target[name](...rest);
  }

  const bridge = {
    /** Opens the client. `receive(target, name, json)` is called with each message. */
    open(options, receive) {
      bridge.close();
      receiver = receive;
      try {
        // What no JSON can hold, such as getToken, is the page's.
        client = Parlor.init({ ...globalThis.parlorOptions, ...JSON.parse(options) });
      } catch (e) {
        return deliver("", "error", problem(e));
      }
      const { createBoards, createTournaments } = Parlor; // where their scripts are loaded
      areas = {
        rooms: client.rooms, wallet: client.wallet, store: client.store, progress: client.progress,
        friends: client.friends, account: client.account,
        boards: createBoards && createBoards(client), tournaments: createTournaments && createTournaments(client),
      };
      for (const name of clientEvents) client.on(name, (e) => deliver("", name, name === "error" ? problem(e) : e));
      deliver("", "state", client.state);
    },
    /** Calls a method with a JSON array of arguments. The target of the reply is the id. */
    async ask(id, method, args) {
      try {
        deliver(id, "ok", reply(await run(method, JSON.parse(args))));
      } catch (e) {
        deliver(id, "error", problem(e));
      }
    },
    /** Returns JSON of the messages since then, [[target, name, value], …], or "" for none. */
    take() {
      const taken = queue;
      queue = [];
      if (!taken.length) return "";
      const quote = JSON.stringify;
      return `[${taken.map(({ target, name, json }) => `[${quote(target)},${quote(name)},${json}]`).join()}]`;
    },
    /** Returns an amount as players read it, "2.50 Gold", or "" before the token was seen. */
    format(amount, tokenId) {
      try {
        return client.wallet.format(amount, tokenId);
      } catch {
        return "";
      }
    },
    /** Returns the service's clock, in ms since 1970. */
    time: () => client ? client.time() : Date.now(),
    /** Ends the connection and forgets what waits. */
    close() {
      receiver = undefined;
      for (const roomId of [...rooms.keys()]) release(roomId);
      client?.close();
      client = undefined;
      areas = {};
      queue = [];
    },
  };
  globalThis.ParlorBridge = bridge;
})();
