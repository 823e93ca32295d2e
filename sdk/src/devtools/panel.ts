// What the devtools show: calls, events, the state of the client, and its network.
import type { Parlor } from "../types.js";
import type { Network } from "./network.js";
import { style } from "./style.js";
import type { DebugCall, DebugEvent } from "./types.js";

const drawMs = 100; // between two drawings
const copiedMs = 1500;

/** What a page adds to the panel. */
export interface Additions {
  /** Returns a button for a call, such as one that shows the code that made it. */
  buttonOf?(call: DebugCall): { label: string; press(): void } | undefined;
}

type Child = Node | string | false | undefined;

/** Makes an element. A function among its properties listens to an event. */
function make<K extends keyof HTMLElementTagNameMap>(
  tag: K, props: Record<string, any> = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child || child === "") as (Node | string)[]);
  return element;
}

const pretty = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "");
const timeOf = (at: number) => new Date(at).toTimeString().slice(0, 8);
const median = (list: number[]) => [...list].sort((a, b) => a - b)[list.length >> 1];

/** Makes a list of facts. A fact without a value is left out. */
function facts(all: Record<string, unknown>): HTMLElement {
  const known = Object.entries(all).filter(([, value]) => value !== undefined && value !== false);
  return make("dl", {}, ...known.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))]));
}

/** The panel of a client. */
export function createPanel(parlor: Parlor, network: Network, writeTest: () => string, { buttonOf }: Additions = {}) {
  const host = document.createElement("parlor-debug");
  const shadow = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  shadow.adoptedStyleSheets = [sheet];

  // Copies, and where the browser forbids that, shows the text for the player to copy.
  const byHand = make("textarea", { hidden: true, readonly: true, "aria-label": "Copy this text" });
  function copyButton(label: string, text: () => string, name = label): HTMLElement {
    const button = make("button", { type: "button", "aria-label": name, async click() {
      const copied = text();
      try {
        await navigator.clipboard.writeText(copied);
        byHand.hidden = true;
        button.textContent = "Copied";
      } catch {
        byHand.value = copied;
        byHand.hidden = false;
        byHand.select();
      }
      setTimeout(() => { button.textContent = label; }, copiedMs);
    } }, label);
    return button;
  }

  const block = (title: string, value: unknown) => value !== undefined && make("div", {},
    make("span", { class: "note" }, `${title} `), copyButton("Copy", () => pretty(value), `Copy: ${title}`),
    make("pre", { tabindex: "0", "aria-label": title }, pretty(value)));

  /**
   * A list with its tools. `summarize` fills a row, `explain` what opens below it. Entries that are
   * `final` never change.
   */
  function createList<T extends { n: number }>(label: string, entries: T[], {
    summarize, explain, textOf, final,
  }: { summarize(entry: T): Child[]; explain(entry: T): Child[]; textOf(entry: T): string; final?: boolean }) {
    const rows = new Map<T, { item: HTMLLIElement; shown: string; draw(text: string): void }>();
    const list = make("ol");
    const filter = make("input", {
      type: "search", placeholder: "Filter", "aria-label": `Filter the ${label}`, input: () => draw(),
    });
    let isPaused = false;
    const pause = make("button", { type: "button", "aria-pressed": "false", click() {
      isPaused = !isPaused;
      pause.setAttribute("aria-pressed", String(isPaused));
      draw();
    } }, "Pause");

    function addRow(entry: T) {
      const summary = make("summary");
      const body = make("div", { class: "body" });
      const open = () => body.replaceChildren(...fold.open ? explain(entry).filter(Boolean) as Node[] : []);
      const fold = make("details", { toggle: open }, summary, body);
      const row = {
        item: make("li", {}, fold), shown: "",
        draw(text: string) {
          if (text === row.shown) return;
          row.shown = text;
          summary.replaceChildren(...summarize(entry).filter(Boolean) as Node[]);
          if (fold.open) open();
        },
      };
      rows.set(entry, row);
      list.prepend(row.item);
      return row;
    }

    function draw() {
      if (!isPaused) {
        const kept = new Set(entries);
        for (const [entry, { item }] of rows) {
          if (kept.has(entry)) continue;
          item.remove();
          rows.delete(entry);
        }
        for (const entry of entries) {
          const row = rows.get(entry);
          if (!row || !final) (row || addRow(entry)).draw(textOf(entry));
        }
      }
      const wanted = filter.value.toLowerCase();
      for (const { item, shown } of rows.values()) item.hidden = !shown.toLowerCase().includes(wanted);
    }
    const clear = make("button", { type: "button", click: () => network.clear() }, "Clear");
    return { draw, content: [make("div", { class: "tools" }, filter, pause, clear), list] };
  }

  const roomName = (roomId?: string) => roomId && (network.rooms.get(roomId)?.code || roomId.slice(0, 8));
  const outcome = (call: DebugCall) => call.failure || [call.status, call.code].filter(Boolean).join(" ") ||
    (call.ms !== undefined ? "ok" : call.kind === "socket" && !call.id ? "sent" : "…");

  const calls = createList<DebugCall>("calls", network.calls, {
    textOf: (call) =>
      [call.method || "message", call.path, outcome(call), call.ms, call.requestId, call.idempotencyKey].join(" "),
    summarize: (call) => [
      make("span", { class: "kind" }, call.method || "message"),
      make("span", { class: "path" }, call.path.replace(/^\/api\/v1\//, "")),
      make("span", { class: call.failure || call.code || call.status! >= 400 ? "bad" : "good" }, outcome(call)),
      make("span", { class: "ms" }, call.ms === undefined ? "" : `${call.ms} ms`),
    ],
    explain(call) {
      const button = buttonOf?.(call);
      return [
        facts({
          "Address": call.kind === "http" && call.path, "Time": timeOf(call.at), "Request id": call.requestId,
          "Idempotency key": call.idempotencyKey, "Message id": call.id,
          "Sent": `${call.sentBytes} bytes`,
          "Received": call.receivedBytes !== undefined && `${call.receivedBytes} bytes`,
        }),
        button && make("button", { type: "button", click: () => button.press() }, button.label),
        block("Request", call.request), block("Response", call.response),
      ];
    },
  });

  const events = createList<DebugEvent>("events", network.events, {
    final: true,
    textOf: (event) => [roomName(event.roomId), event.name, event.seq, pretty(event.data)].join(" "),
    summarize: (event) => [
      make("time", {}, timeOf(event.at)),
      make("span", { class: "path" }, event.name),
      event.lost && make("span", { class: "bad" }, "lost"),
      make("span", { class: "ms" }, [roomName(event.roomId), event.seq && `#${event.seq}`].filter(Boolean).join(" ")),
    ],
    explain: (event) => [
      facts({ "Room": event.roomId, "Position": event.seq, "Size": `${event.bytes} bytes` }), block("Data", event.data),
    ],
  });

  const statePage = make("div", { class: "page" });
  async function drawState() {
    const { roundTrips, rooms } = network;
    const isOpen = (call: DebugCall) => call.ms === undefined && !call.failure && (call.kind === "http" || call.id);
    const waiting = network.calls.filter(isOpen);
    const purchases = await parlor.store.pending().catch(() => []);
    const ahead = Math.round(parlor.time() - Date.now());
    const followed = [...rooms].filter(([, room]) => room.seq !== undefined);
    statePage.replaceChildren(
      facts({
        "Connection": `${parlor.state}${network.isCut ? ", cut here" : ""}`,
        "Player": parlor.user ? `${parlor.user.username}, user ${parlor.user.id}` : "not signed in",
        "Round trip": roundTrips.length > 0 &&
          `${roundTrips[roundTrips.length - 1]} ms, median ${median(roundTrips)} ms`,
        "Clock": `the service is ${Math.abs(ahead)} ms ${ahead < 0 ? "behind" : "ahead"}`,
        "Waiting for a reply": `${waiting.filter(({ kind }) => kind === "http").length} calls, ` +
          `${waiting.filter(({ kind }) => kind === "socket").length} messages`,
        "Not sent yet": `${network.unsentBytes()} bytes`,
        "Purchases not settled": purchases.length,
        "Events lost on purpose": network.lost,
      }),
      make("h2", {}, "Rooms that are followed"),
      followed.length > 0 ? make("table", {},
        make("thead", {}, make("tr", {},
          ...["Code", "Status", "Seq", "Position"].map((name) => make("th", { scope: "col" }, name)))),
        make("tbody", {}, ...followed.map(([roomId, { status, seq, position }]) =>
          make("tr", { title: roomId },
            ...[roomName(roomId), status, seq, position].map((value) => make("td", {}, String(value ?? "")))))),
      ) : make("p", { class: "note" }, "None."),
    );
  }

  function choice(label: string, values: number[], unit: string, set: (value: number) => void) {
    const select = make("select", { change: () => set(Number(select.value)) },
      ...values.map((value) => make("option", { value: String(value) }, `${value} ${unit}`)));
    return make("label", {}, label, select);
  }
  const networkPage = make("div", { class: "page" },
    choice("Latency of each message and reply", [0, 50, 100, 200, 500, 1000, 2000], "ms",
      (ms) => { network.latencyMs = ms; }),
    choice("Events of rooms that get lost", [0, 5, 10, 20, 50], "%",
      (percent) => { network.loss = percent / 100; }),
    make("p", { class: "note" }, "Cut: the page is not told, and calls fail. Go offline: the browser says so too. ",
      "Disconnect: the connection ends once. The SDK catches up in each case."),
    make("div", { class: "tools" },
      make("button", { type: "button", click: () => network.cut() }, "Cut"),
      make("button", { type: "button", click: () => network.cut({ offline: true }) }, "Go offline"),
      make("button", { type: "button", click: () => network.resume() }, "Resume"),
      make("button", { type: "button", click: () => network.disconnect() }, "Disconnect")));

  const pages = [
    { name: "Calls", content: calls.content, draw: calls.draw },
    { name: "Events", content: events.content, draw: events.draw },
    { name: "State", content: [statePage], draw: drawState },
    { name: "Network", content: [networkPage], draw: () => {} },
  ].map((page, i) => ({
    ...page,
    tab: make("button", {
      type: "button", role: "tab", id: `tab-${i}`, "aria-controls": `page-${i}`, click: () => choose(i),
    }, page.name),
    element: make("div", {
      role: "tabpanel", id: `page-${i}`, "aria-labelledby": `tab-${i}`, tabindex: "0",
    }, ...page.content),
  }));
  let chosen = 0;
  function choose(i: number) {
    chosen = (i + pages.length) % pages.length;
    pages.forEach(({ tab, element }, at) => {
      tab.setAttribute("aria-selected", String(at === chosen));
      tab.tabIndex = at === chosen ? 0 : -1;
      element.hidden = at !== chosen;
    });
    draw();
  }

  const state = make("span", { role: "status" });
  const trip = make("span", { class: "note trip" });
  const plug = make("button", { type: "button", click: () => (network.isCut ? network.resume() : network.cut()) });
  const shrink = make("button", {
    type: "button", "aria-label": "Close the devtools", click: () => unfold(false),
  }, "×");
  const panel = make("section", { "aria-label": "Parlor devtools" },
    make("header", {}, state, trip, plug, copyButton("Copy as test", writeTest), shrink),
    make("div", { role: "tablist", "aria-label": "Devtools", keydown(e: KeyboardEvent) {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
      if (!step) return;
      choose(chosen + step);
      pages[chosen].tab.focus();
    } }, ...pages.map(({ tab }) => tab)),
    ...pages.map(({ element }) => element), byHand);
  const pill = make("button", { type: "button", class: "open", "aria-expanded": "false", click: () => unfold(true) });
  shadow.append(pill, panel);

  function unfold(isOpen: boolean) {
    panel.hidden = !isOpen;
    pill.hidden = isOpen;
    draw();
    (isOpen ? shrink : pill).focus();
  }

  function draw() {
    const ms = network.roundTrips[network.roundTrips.length - 1];
    const text = `${parlor.state}${network.isCut ? ", cut" : ""}`;
    if (state.textContent !== text) state.textContent = text; // it is read aloud
    trip.textContent = ms === undefined ? "" : `${ms} ms`;
    state.className = `state ${parlor.state}`;
    pill.className = `open ${parlor.state}`;
    pill.textContent = `Parlor: ${text} ${trip.textContent}`;
    plug.textContent = network.isCut ? "Resume" : "Cut";
    if (!panel.hidden) void pages[chosen].draw();
  }
  let timer: any;
  function drawSoon() {
    timer ||= setTimeout(() => {
      timer = undefined;
      draw();
    }, drawMs);
  }
  const unlisten = network.listen(drawSoon);
  parlor.on("user", drawSoon);
  parlor.on("state", (now) => {
    drawSoon();
    if (now !== "closed") return;
    unlisten();
    host.remove();
  });

  return {
    /** Shows the panel above the page, folded. */
    float() {
      host.setAttribute("floating", "");
      panel.hidden = true;
      choose(0);
      document.body.append(host);
    },
    /** Shows the panel in an element, open. */
    mount(element: Element) {
      host.removeAttribute("floating");
      panel.hidden = false;
      pill.hidden = shrink.hidden = true;
      choose(chosen);
      element.append(host);
    },
  };
}
