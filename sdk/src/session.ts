import type { Context } from "./context.js";
import { isRefusal, need } from "./errors.js";
import { withLock } from "./lock.js";
import { randomHex } from "./random.js";
import type { User } from "./types.js";

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
  /** Renews the token if it expires soon, and from now on before it does. */
  wake(): void;
  /** Ends what wake began. */
  close(): void;
}

interface Stored {
  accessToken: string;
  refreshToken: string;
  user: User;
}

/** Returns when a token was issued and expires, in ms of the service's clock. */
function lifetime(token: string): [issuedAt: number, endOfLife: number] {
  try {
    const { exp, iat = exp - 900 } = JSON.parse(atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/")));
    if (exp > 0) return [iat * 1000, exp * 1000];
  } catch {} // not a JWT: the service will refuse it when it has expired
  return [0, 1e16];
}

export function createSession(c: Context): Session {
  const { getToken } = c.options;
  const deviceKey = `${c.prefix}:device`;
  let access = "";
  let rejected = "";
  let renewal: Promise<string> | undefined;
  let timer: any;

  /** The part of a token's life that is left, in ms, without the last fifth if `early`. */
  function left(token: string, early: boolean) {
    const [issuedAt, endOfLife] = lifetime(token);
    return endOfLife - (early ? (endOfLife - issuedAt) / 5 : 0) - c.time();
  }
  const usable = (token: string, early: boolean) => token && token !== rejected && left(token, early) > 0;

  function adopt(token: string, user?: User) {
    // A service that does not know the message closes the socket when its token expires. It comes back.
    if (access && access !== token && c.socket.isUp()) {
      c.socket.ask("auth.refresh", { accessToken: token }).catch(() => {});
    }
    access = token;
    if (user) c.onUser(user);
    return token;
  }

  async function signIn(path: string, body: object): Promise<string> {
    const { accessToken, refreshToken, user } = await c.http(`auth/${path}`, { body, bearer: "", retries: 1 });
    const [issuedAt] = lifetime(accessToken);
    if (issuedAt) c.syncClock(issuedAt);
    // A browser may show this to the next holder of the lock a moment late. It then refreshes the old
    // token once more, and the service gives it the same successor.
    await c.shelf.set(c.prefix, { accessToken, refreshToken, user });
    return adopt(accessToken, user);
  }

  async function renewStored(): Promise<string> {
    const stored: Stored | undefined = await c.shelf.get(c.prefix); // in the lock: another tab may have renewed it
    if (stored) {
      const { accessToken, refreshToken, user } = stored;
      if (!c.user) c.onUser(user); // known before there is a connection
      if (usable(accessToken, true)) return adopt(accessToken, user);
      try {
        return await signIn("refresh", { refreshToken });
      } catch (e) {
        if (!isRefusal(e)) throw e;
        await c.shelf.remove(c.prefix); // it has ended: the device's secret gives the same player
      }
    }
    let deviceSecret = await c.shelf.get(deviceKey);
    if (!deviceSecret) {
      deviceSecret = randomHex(32);
      await c.shelf.set(deviceKey, deviceSecret); // before the request, whose reply may be lost
    }
    const { gameId, username } = c.options;
    return signIn("guest", { gameId: +gameId, username, deviceSecret });
  }

  async function renew(): Promise<string> {
    if (!getToken) return withLock(c.prefix, c.shelf, renewStored);
    const token = await getToken();
    need(typeof token === "string", "needs a token");
    return adopt(token, await c.http("me", { bearer: token, retries: 1 }));
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

  function wake() {
    clearTimeout(timer);
    if (access && !usable(access, true)) token().catch(() => {}); // the next tick tries again
    timer = setTimeout(wake, Math.min(tickMs, Math.max(1000, left(access, true))));
  }

  return {
    freshToken: token,
    refuse(refused) { rejected = refused; },
    currentToken: () => access,
    async forget() {
      const stored: Stored | undefined = await c.shelf.get(c.prefix);
      await c.shelf.remove(c.prefix);
      await c.shelf.remove(deviceKey);
      return stored?.refreshToken || "";
    },
    wake,
    close: () => clearTimeout(timer),
  };
}
