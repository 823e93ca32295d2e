import type { Context } from "./context.js";
import { limitSize, need, ParlorError } from "./errors.js";
import type { SendOptions } from "./types.js";

const maxFrameBytes = 16 << 10;
const maxQueued = 64; // messages
const maxQueuedBytes = 256 << 10;
const maxWaitMs = 10_000;
const framesPerSecond = 50; // the service closes at 60
const burst = 100; // the service closes at 120
const maxBuffered = 64 << 10; // bytes in the browser, above which volatile messages are dropped

/** Sends the messages of rooms: at once, or when there is a connection again. */
export function createOutbox(c: Context) {
  const queue: { text: string; size: number; at: number }[] = [];
  let permits = burst;
  let permitsAt = 0;
  let timer: any;

  /** Sends a frame, if there is a connection and the rate allows it. */
  function transmit(text: string) {
    const now = Date.now();
    permits = Math.min(burst, permits + ((now - permitsAt) / 1000) * framesPerSecond);
    permitsAt = now;
    if (!c.socket.isUp() || permits < 1) return false;
    permits--;
    c.socket.send(text);
    return true;
  }

  function flush() {
    clearTimeout(timer);
    if (c.state === "closed") return;
    let late = 0;
    while (queue.length) {
      const isLate = Date.now() - queue[0].at > maxWaitMs;
      if (!isLate && !transmit(queue[0].text)) break;
      late += +isLate;
      queue.shift();
    }
    if (late) c.reportError(new ParlorError("timeout", `${late} messages`));
    if (queue.length) timer = setTimeout(flush, 1000 / framesPerSecond);
  }

  return {
    send(roomId: string, op: string, payload: unknown, { volatile, ...o }: SendOptions) {
      need(op && typeof op === "string", "needs a name");
      const text = JSON.stringify({ type: "room.send", data: { roomId, op, payload, ...o } });
      const size = limitSize(text, maxFrameBytes);
      if (volatile) {
        if (!queue.length && c.socket.buffered()! < maxBuffered) transmit(text);
      } else if (queue.length || !transmit(text)) {
        const at = Date.now();
        if (queue.length >= maxQueued || queue.reduce((sum, q) => sum + q.size, size) > maxQueuedBytes) {
          throw new ParlorError("queue_full");
        }
        queue.push({ text, size, at });
        flush();
      }
    },
    flush,
  };
}
