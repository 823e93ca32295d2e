import { createClient } from "./client.js";
import type { Options, Parlor } from "./types.js";

export { ParlorError } from "./errors.js";
export type { ClientCode, Code, ServiceCode } from "./generated/codes.js";
export type * from "./types.js";

const clients = new Map<string, Parlor>();
let scriptOrigin = "";

/** Sets the default of `baseUrl`: the origin that the SDK's own script came from. */
export function setScriptOrigin(address: string | undefined) {
  try {
    scriptOrigin = new URL(address || "").origin;
  } catch {} // a bundle
}

/**
 * Returns the client of a game at once. It signs in and connects by itself; `await init(…)` waits
 * for that. The same `gameId` and `baseUrl` give the same client. Throws a TypeError when an option
 * is missing or of a wrong type.
 */
export function init<Messages = any>(options: Options): Parlor<Messages> & PromiseLike<Parlor<Messages>> {
  const gameId = Number(options?.gameId);
  if (!(gameId > 0) || gameId % 1) throw new TypeError("init needs gameId");
  const address = options.baseUrl || scriptOrigin || globalThis.location?.origin;
  if (!/^https?:\/\//.test(address)) throw new TypeError("init needs baseUrl");
  if (options.getToken && typeof options.getToken !== "function") throw new TypeError("getToken must be a function");
  if (!(options.WebSocket || globalThis.WebSocket)) throw new TypeError("init needs WebSocket, such as ws");
  const base = address.replace(/\/+$/, "");
  const name = `${gameId} ${base}`;
  let client = clients.get(name);
  if (!client) {
    client = createClient({ ...options, gameId }, base, () => clients.delete(name));
    clients.set(name, client);
  }
  return client as any;
}
