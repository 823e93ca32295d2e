import type { Context } from "./context.js";
import { ParlorError } from "./errors.js";
import type { Balance, EntryToken, Wallet } from "./types.js";

type Named = Pick<EntryToken, "tokenId" | "tokenName" | "metadata">;

export function createWallet(c: Context) {
  const tokens = new Map<string, Named>();
  let last: Balance[] | undefined;

  const learn = (list: Named[]) => list.forEach((token) => tokens.set(token.tokenId, token));

  const wallet: Wallet = {
    async balances() {
      const { balances, asOf } = await c.http("GET", "user-balance/token-balances");
      c.syncClock(Date.parse(asOf));
      learn(balances);
      return (last = balances);
    },
    async balance(tokenId) {
      const found = (await wallet.balances()).find((b) => b.tokenId === tokenId);
      if (!found) throw new ParlorError("token_not_found", `the player has never had ${tokenId}`, { status: 404 });
      return found;
    },
    ledger: (query = {}) => c.http("GET", "user-balance/ledger", { query }),
    format(amount, tokenId) {
      const token = tokens.get(tokenId);
      if (!token) throw new ParlorError("token_not_found", `call wallet.balances() before format(…, "${tokenId}")`);
      const decimals = Number(token.metadata.decimals);
      let text = typeof amount === "number" ? amount.toFixed(decimals) : amount;
      if (!/^-?\d+(\.\d+)?$/.test(text)) throw new TypeError("format needs a number or a text of digits");
      if (typeof amount !== "number" && decimals && !text.includes(".")) {
        const digits = text.replace("-", "").padStart(decimals + 1, "0");
        text = `${text[0] === "-" ? "-" : ""}${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
      }
      return `${text} ${token.tokenName}`;
    },
    limits: (change) => c.http(change ? "PUT" : "GET", "me/limits", { body: change }),
  };

  return {
    wallet,
    learn,
    /** Emits the balances that changed while nobody listened. */
    async catchUp() {
      if (!last) return;
      const before = new Map(last.map((b) => [b.tokenId, b]));
      for (const b of await wallet.balances()) {
        const old = before.get(b.tokenId);
        if (old?.amount !== b.amount || old?.heldAmount !== b.heldAmount) c.emit("balance", b);
      }
    },
    /** Keeps what `catchUp` compares with. */
    onBalance(event: any) {
      last = last?.map((b) => (b.tokenId === event.tokenId ? { ...b, ...pick(event) } : b));
    },
  };
}

const pick = ({ volume, amount, held, heldAmount }: Balance) => ({ volume, amount, held, heldAmount });
