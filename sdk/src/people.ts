import type { Context } from "./context.js";
import { need } from "./errors.js";
import type { Account, Friends, OwnAccount } from "./types.js";

export function createFriends(c: Context): Friends {
  const call = async (method: string, userId: number, rest = "") => {
    need(Number.isInteger(userId), "needs userId");
    return c.http(`friends/${userId}${rest}`, { method });
  };
  return {
    list: (query) => c.http("friends", { query }),
    add: (userId) => call("POST", userId),
    remove: (userId) => call("DELETE", userId),
    block: (userId) => call("POST", userId, "/block"),
  };
}

export function createAccount(c: Context, close: () => void): OwnAccount {
  async function change(body: object, path = "me", method = "PATCH"): Promise<Account> {
    const account = await c.http(path, { method, body });
    c.onUser(account);
    return account;
  }
  return {
    rename: (username) => change({ username }),
    avatar: (avatar) => change({ avatar }),
    token: () => c.session.freshToken(),
    link: (proof) => change(proof, "auth/link", "POST"),
    async signOut() {
      const token = c.session.currentToken();
      const refreshToken = await c.session.forget();
      close();
      if (token) await c.http("auth/logout", { body: { refreshToken }, bearer: token, idempotencyKey: "" });
    },
    async remove() {
      await c.http("me", { method: "DELETE" });
      await c.session.forget();
      close();
    },
  };
}
