import type { Context } from "./context.js";
import { isRefusal, need, ParlorError } from "./errors.js";
import { isOffline } from "./http.js";
import { randomHex } from "./random.js";
import type { EntryToken, PendingPurchase, Purchase, Store } from "./types.js";

// The service keeps the outcome of a key for 24 hours. A purchase that is older might happen twice.
const maxPendingMs = 23 * 3_600_000;

export function createStore(c: Context, note: (token: EntryToken) => void) {
  const prefix = `${c.prefix}:buy:`;
  const running = new Set<string>();

  async function pending(): Promise<PendingPurchase[]> {
    const all = await Promise.all((await c.shelf.keys(prefix)).map(c.shelf.get));
    return all.filter((p) => p?.userId === c.user?.id).sort((a, b) => a.at - b.at);
  }

  const remove = (key: string) => c.shelf.remove(prefix + key);

  /** Sends a purchase with its own key, so that it happens once however often it is sent. */
  async function send(purchase: PendingPurchase): Promise<Purchase> {
    const { key, assetId, quantity, expectedPrice } = purchase;
    running.add(key);
    try {
      await c.shelf.set(prefix + key, purchase);
      const body = { quantity, expectedPrice };
      const call = { body, idempotencyKey: key };
      const bought = await c.http<Purchase>(`user-assets/add/game-asset/${assetId}`, call);
      note(bought.entryToken);
      await remove(key);
      return bought;
    } catch (e: any) {
      if (isRefusal(e) && e.status !== 401) await remove(key); // an ended session says nothing about it
      throw e;
    } finally {
      running.delete(key);
    }
  }

  const store: Store = {
    assets: (query) => c.http("game-assets", { query }),
    async buy(assetId, { quantity = 1, expectedPrice } = {}) {
      need(Number.isInteger(assetId), "needs assetId");
      if (isOffline()) throw new ParlorError("offline"); // money does not wait
      await c.session.freshToken(); // the purchase has its player before its key
      return send({ key: randomHex(16), assetId, quantity, expectedPrice, userId: c.user!.id, at: c.time() });
    },
    owned: (query) => c.http("user-assets", { query }),
    pending,
  };

  return {
    store,
    /** Finds out what became of the purchases whose outcome is not known. */
    async catchUp() {
      for (const purchase of await pending()) {
        const { key } = purchase;
        if (running.has(key)) continue;
        if (c.time() - purchase.at < maxPendingMs) {
          await send(purchase).catch((e) => e.code === "closed" || c.reportError(e));
        } else {
          await remove(key);
          c.reportError(new ParlorError("outcome_unknown", "", { data: purchase }));
        }
      }
    },
  };
}
