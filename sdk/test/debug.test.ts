// The debug panel's hold on the network, with a service that it cannot tell from a real one.
import { describe, expect, it, vi } from "vitest";
import { watchNetwork } from "../src/debug.js";
import type { Options } from "../src/types.js";
import { FakeService } from "./fake_service.js";
import { openTab, run, settle, useFakeClock } from "./tab.js";

useFakeClock();

/** A socket whose `onmessage` is an accessor of its prototype, as a browser's is. */
function browserSocket(service: FakeService): any {
  const Fake = service.WebSocket;
  return class extends EventTarget {
    readyState = 1;
    inner: any;

    constructor(address: string) {
      super();
      this.inner = new Fake(address);
      this.inner.onopen = () => (this as any).onopen?.();
      this.inner.onclose = (e: any) => {
        this.dispatchEvent(new Event("close"));
        (this as any).onclose?.(e);
      };
    }

    set onmessage(fn: any) { this.inner.onmessage = fn; }
    get bufferedAmount() { return 0; }
    send(text: string) { this.inner.send(text); }
    close() { this.inner.close(); }
  };
}

async function openWatched(faults: { latencyMs: number; loss: number }) {
  const service = new FakeService();
  const options: Options = { gameId: "1", fetch: service.fetch, WebSocket: browserSocket(service) };
  const network = watchNetwork(options, faults);
  const client = openTab(service, options);
  await settle(client.ready);
  const room = await settle(client.rooms.create({ maxPlayers: 4 }));
  await run(100);
  return { service, network, client, room, fake: service.rooms.get(room.roomId)! };
}

describe("the debug panel", () => {
  it("shows the round trip and the position of each room", async () => {
    const { service, network, room, fake } = await openWatched({ latencyMs: 0, loss: 0 });
    service.join(fake, service.newUser("Bob"));
    await run(100);
    expect(network.seen.seqs).toEqual(new Map([[room.roomId, 2]]));
    expect(network.seen.roundTripMs).toBeGreaterThanOrEqual(10);
  });

  it("adds latency and keeps the order when it ends", async () => {
    const faults = { latencyMs: 0, loss: 0 };
    const { service, room, fake } = await openWatched(faults);
    const heard: number[] = [];
    room.on("message", (e) => heard.push(e.payload));
    const tell = (payload: number) => service.tell(fake, "room.message", { from: 9, op: "n", payload });
    faults.latencyMs = 200;
    tell(1);
    await run(100);
    expect(heard).toEqual([]);
    faults.latencyMs = 0;
    tell(2);
    await run(200);
    expect(heard).toEqual([1, 2]);
  });

  it("loses events, which the room then fetches", async () => {
    const faults = { latencyMs: 0, loss: 1 };
    const { service, network, room, fake } = await openWatched(faults);
    service.join(fake, service.newUser("Bob"));
    await run(100);
    expect(network.seen.lost).toBe(1);
    expect(room.participants).toHaveLength(1);
    faults.loss = 0;
    service.join(fake, service.newUser("Cleo"));
    await run(100);
    expect(room.participants).toHaveLength(3);
  });

  it("drops the connection, which comes back", async () => {
    const { network, client } = await openWatched({ latencyMs: 0, loss: 0 });
    const states: string[] = [];
    client.on("state", (state) => states.push(state));
    network.drop();
    await run(2000);
    expect(states).toEqual(["reconnecting", "online"]);
  });

  it("comes before the connection, and the game goes on without it", async () => {
    const script: any = {};
    const append = vi.fn();
    vi.stubGlobal("document", Object.assign(new EventTarget(), { createElement: () => script, head: { append } }));
    const show = vi.fn();
    vi.stubGlobal("parlorDebug", show);
    try {
      for (const outcome of ["onload", "onerror"]) {
        if (outcome === "onerror") vi.stubGlobal("parlorDebug", undefined);
        const service = new FakeService();
        const client = openTab(service, { debug: true });
        await run(1000);
        expect([append.mock.lastCall, script.src]).toEqual([[script], `${service.base}/sdk/debug.v1.js`]);
        expect(service.calls).toEqual([]);
        script[outcome]();
        await settle(client.ready);
        expect(show).toHaveBeenCalledTimes(1);
      }
    } finally {
      vi.unstubAllGlobals();
    }
  });
});
