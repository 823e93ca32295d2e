import type { Context } from "./context.js";
import type { Account, Friends, OwnAccount } from "./types.js";

export function createFriends(c: Context): Friends {
  const call = async (method: string, userId: number, rest = "") => {
    if (!Number.isInteger(userId)) throw new TypeError("a player is named by a user id");
    return c.http(method, `friends/${userId}${rest}`);
  };
  return {
    list: (query) => c.http("GET", "friends", { query }),
    add: (userId) => call("POST", userId),
    remove: (userId) => call("DELETE", userId),
    block: (userId) => call("POST", userId, "/block"),
  };
}

export function createAccount(c: Context, close: () => void): OwnAccount {
  async function change(method: string, path: string, body: object): Promise<Account> {
    const account = await c.http(method, path, { body });
    c.onUser(account);
    return account;
  }
  return {
    rename: (username) => change("PATCH", "me", { username }),
    avatar: (avatar) => change("PATCH", "me", { avatar }),
    token: () => c.session.freshToken(),
    link: (proof) => change("POST", "auth/link", proof),
    async signOut() {
      const token = c.session.currentToken();
      const refreshToken = await c.session.forget();
      close();
      if (token) await c.http("POST", "auth/logout", { body: { refreshToken }, bearer: token, key: "" });
    },
    async remove() {
      await c.http("DELETE", "me");
      await c.session.forget();
      close();
    },
  };
}
