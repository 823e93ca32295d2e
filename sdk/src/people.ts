import type { Context } from "./context.js";
import type { Account, Friends, OwnAccount } from "./types.js";

export function createFriends(c: Context): Friends {
  const of = (userId: number, rest = "") => {
    if (!Number.isInteger(userId)) throw new TypeError("name the player by the id of the user");
    return `friends/${userId}${rest}`;
  };
  return {
    list: (query = {}) => c.http("GET", "friends", { query }),
    add: async (userId) => c.http("POST", of(userId)),
    remove: async (userId) => c.http("DELETE", of(userId)),
    block: async (userId) => c.http("POST", of(userId, "/block")),
  };
}

export function createAccount(c: Context, close: () => void): OwnAccount {
  async function changed(change: Promise<Account>) {
    const account = await change;
    c.onUser(account);
    return account;
  }
  return {
    rename: (username) => changed(c.http("PATCH", "me", { body: { username } })),
    avatar: (avatar) => changed(c.http("PATCH", "me", { body: { avatar } })),
    link: (proof) => changed(c.http("POST", "auth/link", { body: proof })),
    async signOut() {
      const token = c.session.currentToken();
      const refreshToken = (await c.session.forget()) || undefined;
      close();
      if (refreshToken || token) await c.http("POST", "auth/logout", { body: { refreshToken }, token, key: "" });
    },
    async remove() {
      await c.http("DELETE", "me");
      await c.session.forget();
      close();
    },
  };
}
