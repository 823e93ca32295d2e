import type { Context } from "./context.js";
import { isRefusal } from "./errors.js";
import { isOffline } from "./http.js";
import { withLock } from "./lock.js";
import { randomHex, sleep } from "./random.js";
import type { User } from "./types.js";

const visibleMs = 100;
const tickMs = 20_000; // how late a timer may notice that the machine slept

/** Who the player is, and the access token that says so. */
export interface Session {
  /** Returns a token that is valid for a while; renews it or signs in first where needed. */
  freshToken(): Promise<string>;
  /** Says that the service refused a token, so that the next one is new. */
  refuse(token: string): void;
  /** The token at hand, if any. */
  currentToken(): string;
  /** Forgets the session and the device's secret. Resolves with the refresh token. */
  forget(): Promise<string>;
  /** Renews the token before it expires, from now on until the function that is returned. */
  keepFresh(onRenewed: (token: string) => void): { check(): void; stop(): void };
}

interface Stored {
  accessToken: string;
  refreshToken: string;
  user: User;
}

/** Returns when a token was issued and expires, in ms of the service's clock. */
function lifetime(token: string): { from: number; to: number } {
  try {
    const claims = JSON.parse(atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/")));
    if (claims.exp > 0) return { from: (claims.iat || claims.exp - 900) * 1000, to: claims.exp * 1000 };
  } catch {} // not a JWT: the service will refuse it when it has expired
  return { from: 0, to: Infinity };
}

export function createSession(c: Context): Session {
  const { getToken } = c.options;
  let access = "";
  let rejected = "";
  let renewal: Promise<string> | undefined;
  let onRenewed = (_token: string) => {};

  /** The part of a token's life that is left, in ms, without the last fifth if `early`. */
  function left(token: string, early: boolean) {
    const { from, to } = lifetime(token);
    return to - (early ? (to - from) / 5 : 0) - c.time();
  }
  const usable = (token: string, early: boolean) => !!token && token !== rejected && left(token, early) > 0;

  function adopt(token: string, user?: User) {
    const renewed = access && access !== token;
    access = token;
    if (user) c.onUser(user);
    if (renewed) onRenewed(token);
    return token;
  }

  async function read(): Promise<Partial<Stored>> {
    try {
      return JSON.parse((await (await c.shelf).get(c.prefix)) || "{}");
    } catch {
      return {};
    }
  }

  async function signIn(path: string, body: object): Promise<string> {
    const { accessToken, refreshToken, user } = await c.http("POST", `auth/${path}`, { body, bearer: "", retries: 1 });
    const { from } = lifetime(accessToken);
    if (from > 0) c.syncClock(from);
    const storage = await c.shelf;
    await storage.set(c.prefix, JSON.stringify({ accessToken, refreshToken, user }));
    // A browser shows other tabs what was stored a moment later: keep the lock until then.
    if (storage.persistent()) await sleep(visibleMs);
    return adopt(accessToken, user);
  }

  async function renewStored(): Promise<string> {
    const storage = await c.shelf;
    const stored = await read(); // in the lock: another tab may have renewed it
    if (stored.accessToken && stored.refreshToken) {
      if (stored.user && !c.user) c.onUser(stored.user); // known before there is a connection
      if (usable(stored.accessToken, true)) return adopt(stored.accessToken, stored.user);
      try {
        return await signIn("refresh", { refreshToken: stored.refreshToken });
      } catch (e) {
        if (!isRefusal(e)) throw e;
        await storage.remove(c.prefix); // it has ended: the device's secret gives the same player
      }
    }
    let deviceSecret = await storage.get(`${c.prefix}:device`);
    if (!deviceSecret) {
      deviceSecret = randomHex(32);
      await storage.set(`${c.prefix}:device`, deviceSecret); // before the request, whose reply may be lost
    }
    const { username } = c.options;
    return signIn("guest", { gameId: c.gameId, username, deviceSecret });
  }

  async function renew(): Promise<string> {
    if (!getToken) return withLock(c.prefix, await c.shelf, renewStored);
    const token = await getToken();
    if (typeof token !== "string" || !token) throw new TypeError("getToken must resolve with an access token");
    return adopt(token, await c.http("GET", "me", { bearer: token, retries: 1 }));
  }

  async function token(): Promise<string> {
    if (usable(access, true)) return access;
    renewal ||= renew().finally(() => { renewal = undefined; });
    try {
      return await renewal;
    } catch (e) {
      if (usable(access, false) && !isRefusal(e)) return access; // it is good for a while still
      throw e;
    }
  }

  return {
    freshToken: token,
    refuse(refused) { rejected = refused; },
    currentToken: () => access,
    async forget() {
      const storage = await c.shelf;
      const { refreshToken } = await read();
      await storage.remove(c.prefix);
      await storage.remove(`${c.prefix}:device`);
      return refreshToken || "";
    },
    keepFresh(fn) {
      onRenewed = fn;
      let timer: any;
      function check() {
        clearTimeout(timer);
        if (access && !usable(access, true) && !isOffline()) token().catch(() => {}); // the next tick tries again
        timer = setTimeout(check, Math.min(tickMs, Math.max(1000, access ? left(access, true) : tickMs)));
      }
      check();
      return { check, stop: () => clearTimeout(timer) };
    },
  };
}
