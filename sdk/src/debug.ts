// The debug panel: a script or a module that the core loads for `debug: true` or `?parlorDebug`. It
// wraps the network of a client, shows what goes through it and disturbs it on request.
import type { Options, Parlor } from "./types.js";

const styles = `
  :host { position: fixed; right: 8px; bottom: 8px; z-index: 2147483647; }
  div { padding: 8px; border-radius: 6px; background: #16181d; color: #e8eaed; font: 12px/1.5 monospace; }
  button { margin: 4px 4px 0 0; border: 1px solid #5f6368; background: none; color: inherit; font: inherit; }
  button[aria-pressed=true] { background: #8ab4f8; color: #16181d; }
  pre { margin: 0; }
`;

/** What the panel does to the network. */
interface Faults {
  /** Added to each frame and reply, in ms. */
  latencyMs: number;
  /** The part of the frames of rooms that is lost on its way to the page, 0 to 1. */
  loss: number;
}

/** Wraps the network of the client in its options, which the core reads for each call. */
export function watchNetwork(options: Options, faults: Faults) {
  const Socket: typeof WebSocket = options.WebSocket || globalThis.WebSocket;
  const call: (...a: any) => Promise<any> = options.fetch || ((...a: [any]) => globalThis.fetch(...a));
  const open = new Set<WebSocket>();
  const seen = { roundTripMs: 0, seqs: new Map<string, number>(), lost: 0 };

  /** Returns a function that runs its argument late, and after those before it. */
  function createDelay() {
    const queue: (() => void)[] = [];
    return (f: () => void) => {
      if (!queue.length && !faults.latencyMs) return f();
      queue.push(f);
      setTimeout(() => queue.shift()!(), faults.latencyMs);
    };
  }

  /** Notes what a frame from the service shows. Returns whether it is to be lost. */
  function note(frame: any, sentAt: Map<string, number>): boolean {
    const at = sentAt.get(frame.replyTo);
    if (at !== undefined) {
      seen.roundTripMs = Math.round(performance.now() - at);
      sentAt.delete(frame.replyTo);
    }
    if (!frame.roomId) return false;
    if (Math.random() < faults.loss) return !!++seen.lost;
    if (frame.seq) seen.seqs.set(frame.roomId, frame.seq);
    return false;
  }

  options.fetch = async (...a: any[]) => {
    await new Promise<void>(createDelay());
    return call(...a);
  };

  options.WebSocket = class extends Socket {
    private readonly sentAt = new Map<string, number>();
    private readonly delayIn = createDelay();
    private readonly delayOut = createDelay();

    constructor(address: string) {
      super(address);
      open.add(this);
      this.addEventListener("close", () => open.delete(this));
    }

    // The core listens by `onmessage` alone.
    override set onmessage(fn: ((e: MessageEvent) => void) | null) {
      super.onmessage = fn && ((e) => {
        const frames = JSON.parse(e.data);
        const kept = (Array.isArray(frames) ? frames : [frames]).filter((frame) => !note(frame, this.sentAt));
        if (kept.length) this.delayIn(() => fn(new MessageEvent("message", { data: JSON.stringify(kept) })));
      });
    }

    override send(text: string) {
      const { id } = JSON.parse(text);
      if (id) this.sentAt.set(id, performance.now());
      this.delayOut(() => { if (this.readyState === 1) super.send(text); });
    }
  };

  return {
    seen,
    /** Drops every connection. */
    drop: () => open.forEach((socket) => socket.close()),
  };
}

/** Shows the panel on the page. Only CSSOM styles it, which a strict Content-Security-Policy allows. */
function showPanel(parlor: Parlor, options: Options) {
  const faults: Faults = { latencyMs: 0, loss: 0 };
  const network = watchNetwork(options, faults);
  if (!globalThis.document) return;
  const host = document.createElement("parlor-debug");
  const shadow = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(styles);
  shadow.adoptedStyleSheets = [sheet];
  const box = shadow.appendChild(document.createElement("div"));
  const text = box.appendChild(document.createElement("pre"));

  function addButton(label: string, press: () => boolean) {
    const button = box.appendChild(document.createElement("button"));
    button.textContent = label;
    button.onclick = () => button.setAttribute("aria-pressed", String(press()));
  }
  addButton("latency 200 ms", () => !!(faults.latencyMs = faults.latencyMs ? 0 : 200));
  addButton("loss 20 %", () => !!(faults.loss = faults.loss ? 0 : 0.2));
  addButton("drop", () => {
    network.drop();
    return false;
  });

  const timer = setInterval(show, 250);
  function show() {
    const { roundTripMs, seqs, lost } = network.seen;
    text.textContent = [
      `${parlor.state} ${parlor.user?.username ?? ""}`,
      `round trip ${roundTripMs} ms, ${lost} frames lost`,
      ...[...seqs].map(([roomId, seq]) => `${roomId} seq ${seq}`),
    ].join("\n");
    if (parlor.state !== "closed") return;
    clearInterval(timer);
    host.remove();
  }
  show();
  const mount = () => document.body.append(host);
  if (document.body) mount();
  else document.addEventListener("DOMContentLoaded", mount);
}

(globalThis as any).parlorDebug = showPanel;
