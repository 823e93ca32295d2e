import type { Context } from "./context.js";
import { ParlorError, queueFull, timeout } from "./errors.js";
import type { SendOptions } from "./types.js";

const maxFrameBytes = 16 << 10;
const maxQueued = 64; // messages
const maxQueuedBytes = 256 << 10;
const maxWaitMs = 10_000;
const framesPerSecond = 50; // the service closes at 60
const burst = 100; // the service closes at 120
const maxBuffered = 64 << 10; // bytes in the browser, above which volatile messages are dropped

interface Queued {
  frame: string;
  bytes: number;
  at: number; // ms of this machine's clock
}

/** Sends the messages of rooms: at once, or when there is a connection again. */
export function createOutbox(c: Context) {
  let queue: Queued[] = [];
  let bytes = 0;
  let permits = burst;
  let permitsAt = Date.now();
  let timer: any;
  const encoder = new TextEncoder();

  function mayTransmit() {
    const now = Date.now();
    permits = Math.min(burst, permits + (Math.max(0, now - permitsAt) / 1000) * framesPerSecond);
    permitsAt = now;
    return c.socket.isUp() && permits >= 1;
  }

  function transmit(frame: string) {
    permits--;
    c.socket.post(frame);
  }

  function flush() {
    clearTimeout(timer);
    let late = 0;
    while (queue.length && mayTransmit()) {
      const { frame, at } = queue.shift()!;
      if (Date.now() - at > maxWaitMs) late++;
      else transmit(frame);
    }
    bytes = queue.reduce((sum, message) => sum + message.bytes, 0);
    if (late) c.report(Object.assign(timeout(), { message: `timeout: ${late} messages waited for more than 10 s` }));
    if (queue.length && c.socket.isUp()) timer = setTimeout(flush, 1000 / framesPerSecond);
  }

  return {
    send(roomId: string, op: string, payload: unknown, o: SendOptions) {
      if (typeof op !== "string" || !op) throw new TypeError('send needs a name: room.send("move", { x: 3 })');
      const frame = JSON.stringify({ type: "room.send", data: { roomId, op, payload, to: o.to } });
      const size = encoder.encode(frame).length;
      if (size > maxFrameBytes) throw new ParlorError("payload_too_large", `${size} bytes, at most ${maxFrameBytes}`);
      const free = !queue.length && mayTransmit();
      if (o.volatile) {
        if (free && c.socket.buffered() < maxBuffered) transmit(frame);
        return;
      }
      if (free) {
        transmit(frame);
        return;
      }
      const waited = queue.length ? Date.now() - queue[0].at : 0;
      if (queue.length >= maxQueued || bytes + size > maxQueuedBytes || waited > maxWaitMs) {
        throw queueFull(`${queue.length} messages wait to be sent, for ${waited} ms`);
      }
      queue.push({ frame, bytes: size, at: Date.now() });
      bytes += size;
      flush();
    },
    flush,
    close() {
      clearTimeout(timer);
      queue = [];
    },
  };
}
