// A fetch and a WebSocket that can be watched, and cut like a cable. Parlor.init takes them as options.

/** Something that went over the wire. */
export interface Traffic {
  kind: "http" | "in" | "out" | "plug";
  title: string;
  detail: string;
  at: number; // ms since 1970
  times: number; // in a row
}

const listeners = new Set<(traffic: Traffic) => void>();
const sockets = new Set<PluggedSocket>();
let isOut = false;

function report(kind: Traffic["kind"], title: string, detail = "") {
  for (const listener of listeners) listener({ kind, title, detail, at: Date.now(), times: 1 });
}

/** Writes JSON for people, without what signs a player in. */
const pretty = (value: unknown) => JSON.stringify(
  value, (name, member) => (/secret|refreshToken|accessToken/i.test(name) ? "…" : member), 2,
);

/** Reports a frame, which may have several events. */
function reportFrame(kind: "in" | "out", text: string) {
  const parsed = JSON.parse(text);
  for (const frame of Array.isArray(parsed) ? parsed : [parsed]) {
    const number = frame.seq ? ` #${frame.seq}` : "";
    report(kind, frame.type ? `${frame.type}${number}` : `reply to ${frame.replyTo}`, pretty(frame));
  }
}

class PluggedSocket extends WebSocket {
  isCut = false;

  constructor(address: string) {
    super(address);
    sockets.add(this);
    this.addEventListener("close", () => sockets.delete(this));
    this.addEventListener("message", (event) => {
      if (this.isCut) event.stopImmediatePropagation(); // it was on the way when the plug was pulled
      else reportFrame("in", event.data);
    });
  }

  override send(text: string) {
    reportFrame("out", text);
    super.send(text);
  }
}

async function pluggedFetch(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  if (isOut) throw new TypeError("the plug is out");
  const started = performance.now();
  const response = await fetch(input, init);
  const { pathname } = new URL(String(input), location.href);
  const body = typeof init.body === "string" ? pretty(JSON.parse(init.body)) : "";
  const shortened = pathname.replace(/([0-9a-f]{8})-[0-9a-f-]{27}/, "$1…"); // the id of a room
  report("http", `${init.method ?? "GET"} ${shortened}`, `${response.status} in ${Math.round(performance.now() - started)} ms\n${body}`);
  return response;
}

export const plug = {
  fetch: pluggedFetch as typeof fetch,
  WebSocket: PluggedSocket,
  get isOut() { return isOut; },
  watch: (listener: (traffic: Traffic) => void) => listeners.add(listener),

  /** Cuts every connection, and lets no request out for a while. */
  pull(ms: number) {
    if (isOut) return;
    isOut = true;
    report("plug", "The plug is out", "Every connection was cut. No request leaves this page.");
    for (const socket of sockets) {
      socket.isCut = true;
      socket.close();
    }
    setTimeout(() => {
      isOut = false;
      report("plug", "The plug is back in", "The SDK connects again and resumes each room after the last event that it has.");
      dispatchEvent(new Event("online")); // as a browser does when its network is back
    }, ms);
  },
};
