import { ParlorError } from "./errors.js";
import { randomHex, sleep } from "./random.js";
import type { KeyValue } from "./storage.js";

const leaseMs = 15_000; // longer than a refresh may take with its retries' first attempt
const settleMs = 40; // for another tab's write to become visible

/**
 * Runs `f` while no other tab of the same storage runs one under the same name: by Web Locks, or
 * where these are missing or forbidden, by a lease in the storage. A lease can be lost to a tab that
 * was suspended, so `f` must be right without the lock. The lock only saves work.
 */
export async function withLock<T>(name: string, storage: KeyValue, f: () => Promise<T>): Promise<T> {
  try {
    const { locks } = globalThis.navigator || {};
    if (locks) return await locks.request(name, f);
  } catch (e) {
    if (e instanceof ParlorError) throw e; // of f; else a sandboxed frame may not lock
  }
  const key = `${name}:lease`;
  const owner = randomHex(8);
  const current = async () => (await storage.get(key)) || {};
  for (;;) {
    const leftMs = (await current()).until - Date.now();
    if (!(leftMs > 0 && leftMs < 2 * leaseMs)) { // or the clock was changed
      await storage.set(key, { owner, until: Date.now() + leaseMs });
      await sleep(settleMs);
      if ((await current()).owner === owner) break;
    }
    await sleep(settleMs + Math.random() * settleMs);
  }
  try {
    return await f();
  } finally {
    if ((await current()).owner === owner) await storage.remove(key);
  }
}
