import { afterEach, beforeEach, vi } from "vitest";
import { createClient } from "../src/client.js";
import type { Options, Parlor } from "../src/types.js";
import { FakeService, MemoryStorage } from "./fake_service.js";

const tabs = new Set<Parlor>();

/** Makes a client as a page of its own would: `init` gives one client for a game. */
export function openTab(service: FakeService, o: Partial<Options> = {}): Parlor {
  const client = createClient({
    gameId: "1", storage: new MemoryStorage(), fetch: service.fetch, WebSocket: service.WebSocket, ...o,
  }, service.base, () => tabs.delete(client));
  client.on("error", () => {});
  tabs.add(client);
  return client;
}

export function closeTabs() {
  for (const tab of [...tabs]) tab.close();
}

/** Lets the fake clock run. */
export const run = (ms: number) => vi.advanceTimersByTimeAsync(ms);

/** Lets the fake clock run until a promise is settled, a minute at most. */
export async function settle<T>(promise: Promise<T>, ms = 60_000): Promise<T> {
  let done = false;
  const mark = () => { done = true; };
  promise.then(mark, mark);
  for (let passed = 0; !done && passed < ms; passed += 50) await run(50);
  if (!done) throw new Error(`not settled after ${ms} ms`);
  return promise;
}

/** Gives every test of a file a fake clock and closes its clients. */
export function useFakeClock() {
  beforeEach(() => { vi.useFakeTimers({ now: Date.UTC(2026, 10, 20) }); });
  afterEach(() => {
    closeTabs();
    vi.useRealTimers();
  });
}
