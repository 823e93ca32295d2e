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
  const locks = globalThis.navigator?.locks;
  let entered = false;
  if (locks && storage.persistent()) {
    try {
      return await locks.request(name, () => {
        entered = true;
        return f();
      });
    } catch (e) {
      if (entered) throw e; // an error of f; else a sandboxed frame may not lock
    }
  }
  if (!storage.persistent()) return f();
  const key = `${name}:lease`;
  const owner = randomHex(8);
  const current = async () => JSON.parse((await storage.get(key)) || "{}");
  for (;;) {
    const lease = await current();
    if (!(lease.until > Date.now() && lease.until < Date.now() + 2 * leaseMs)) {
      await storage.set(key, JSON.stringify({ owner, until: Date.now() + leaseMs }));
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
