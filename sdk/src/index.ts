import { createClient } from "./client.js";
import { need } from "./errors.js";
import { defaultOrigin, origin } from "./origin.js";
import type { Options, Parlor } from "./types.js";

export { ParlorError } from "./errors.js";
export type * from "./devtools/types.js";
export type { ClientCode, Code, ServiceCode } from "./generated/codes.js";
export type * from "./types.js";

const clients = new Map<string, Parlor>();
/**
 * Returns the client of a game at once. It signs in and connects by itself; `await init(…)` waits
 * for that. The same `gameId` and `baseUrl` give the same client. Throws a TypeError when an option
 * is missing or of a wrong type.
 */
export function init<Messages = any>(options: Options): Parlor<Messages> & PromiseLike<Parlor<Messages>> {
  const gameId = +options?.gameId;
  need(Number.isInteger(gameId) && gameId > 0, "init needs gameId");
  const address = options.baseUrl || defaultOrigin();
  need(origin.test(address!), "init needs baseUrl");
  need(!options.getToken || typeof options.getToken === "function", "getToken needs a function");
  need(options.WebSocket || globalThis.WebSocket, "needs WebSocket");
  const base = address!.replace(/\/+$/, "");
  const name = `${gameId} ${base}`;
  let client = clients.get(name);
  if (!client) {
    client = createClient({ ...options, gameId }, base, () => clients.delete(name));
    clients.set(name, client);
  }
  return client as any;
}
