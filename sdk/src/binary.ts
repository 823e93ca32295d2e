// Messages as bytes, over the connection that the client has. Its own entry point: a game that does
// not need it does not load it.

/** A message of another player. */
export interface BinaryMessage {
  roomId: string;
  /** The player who sent it; 0: the game's server. */
  from: number;
  /** The game's number for the kind of message. */
  op: number;
  payload: Uint8Array;
}

/** Options of a message as bytes. */
export interface BinarySendOptions {
  /** Of such messages with this op that wait for a slow player, only the newest is kept. */
  latest?: boolean;
}

/** A lane for messages as bytes, beside the messages of the client. */
export interface BinaryLane {
  /** For the option `WebSocket` of `init`. */
  readonly WebSocket: any;
  /**
   * Sends bytes to the other players of a room, at most 8 KiB. Returns false when it was dropped:
   * there is no connection, the room is not followed, or too much was sent. Throws a RangeError.
   */
  send(roomId: string, op: number, payload: Uint8Array, o?: BinarySendOptions): boolean;
  /** Adds a listener, and returns the function that removes it. */
  onMessage(fn: (m: BinaryMessage) => void): () => void;
}

const subprotocol = "parlor.v1.bin";
const kindBytes = 1;
const kindJson = 2;
const flagLatest = 0x80;
const headerBytes = 13;
const maxPayloadBytes = 8 << 10;
const maxBuffered = 64 << 10; // bytes in the browser
const framesPerSecond = 55; // the service closes at 60
const burst = 100; // the service closes at 120

/**
 * Makes a lane for the messages of one client:
 * `const lane = createBinaryLane(); const parlor = init({ gameId, WebSocket: lane.WebSocket })`.
 * The nodes must be of a version that knows it.
 */
export function createBinaryLane(o: { WebSocket?: any } = {}): BinaryLane {
  const Native = o.WebSocket || globalThis.WebSocket;
  const listeners = new Set<(m: BinaryMessage) => void>();
  let current: any; // the connection, when it is open
  let indexes = new Map<string, number>(); // by room
  let roomIds = new Map<number, string>(); // by index
  let permits = burst;
  let permitsAt = 0;

  /** Counts a frame. Those of the client are sent in any case. */
  function takePermit() {
    const now = Date.now();
    permits = Math.min(burst, permits + ((now - permitsAt) / 1000) * framesPerSecond) - 1;
    permitsAt = now;
    return permits >= 0;
  }

  function forgetRooms() {
    indexes = new Map();
    roomIds = new Map();
  }

  /** Learns the indexes of rooms from the reply to a subscription. */
  function learnRooms(text: string) {
    const { replyTo, data } = JSON.parse(text);
    for (const { roomId, roomIndex } of (replyTo && data?.rooms) || []) {
      if (!roomIndex) continue;
      indexes.set(roomId.toLowerCase(), roomIndex);
      roomIds.set(roomIndex, roomId.toLowerCase());
    }
  }

  /** Hands bytes to the listeners. Returns the text of a message that was sent as JSON. */
  function receive(buffer: ArrayBuffer): string | undefined {
    const view = new DataView(buffer);
    if (buffer.byteLength < headerBytes) return;
    const roomId = roomIds.get(view.getUint16(1));
    const op = view.getUint16(3);
    const from = Number(view.getBigUint64(5));
    const payload = new Uint8Array(buffer, headerBytes);
    if (!roomId) return;
    if (view.getUint8(0) === kindBytes) listeners.forEach((fn) => fn({ roomId, from, op, payload }));
    else if (view.getUint8(0) === kindJson) {
      const at = JSON.stringify(new Date());
      const data = `{"from":${from || null},"op":"${op}","payload":${new TextDecoder().decode(payload)}}`;
      return `{"type":"room.message","roomId":"${roomId}","at":${at},"data":${data}}`;
    }
  }

  /** What the client takes for a WebSocket. */
  function connect(this: any, address: string) {
    if (!/\/realtime\?/.test(address)) return new Native(address);
    const native = new Native(address, [subprotocol]);
    native.binaryType = "arraybuffer";
    const facade: any = {
      send(text: string) {
        takePermit();
        native.send(text);
      },
      close: (code?: number, reason?: string) => native.close(code, reason),
      get bufferedAmount() { return native.bufferedAmount; },
      get readyState() { return native.readyState; },
    };
    native.onopen = (e: any) => {
      forgetRooms();
      current = native;
      facade.onopen?.(e);
    };
    native.onerror = (e: any) => facade.onerror?.(e);
    native.onclose = (e: any) => {
      if (current === native) current = undefined;
      facade.onclose?.(e);
    };
    native.onmessage = ({ data }: any) => {
      if (typeof data !== "string") data = receive(data);
      else if (data.includes('"roomIndex"')) learnRooms(data);
      if (data) facade.onmessage?.({ data });
    };
    return facade;
  }

  return {
    WebSocket: connect,
    send(roomId, op, payload, { latest } = {}) {
      if (!(op >= 0 && op <= 0xffff && Number.isInteger(op))) throw new RangeError("op must be from 0 to 65535");
      if (payload.length > maxPayloadBytes) throw new RangeError("a payload has at most 8 KiB");
      const index = indexes.get(roomId.toLowerCase());
      if (!index || current?.readyState !== 1 || current.bufferedAmount > maxBuffered || !takePermit()) return false;
      const frame = new Uint8Array(headerBytes + payload.length);
      const view = new DataView(frame.buffer);
      view.setUint8(0, kindBytes | (latest ? flagLatest : 0));
      view.setUint16(1, index);
      view.setUint16(3, op);
      frame.set(payload, headerBytes);
      current.send(frame);
      return true;
    },
    onMessage(fn) {
      listeners.add(fn);
      return () => void listeners.delete(fn);
    },
  };
}
