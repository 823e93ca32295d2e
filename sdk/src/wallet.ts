import type { Context } from "./context.js";
import { ParlorError } from "./errors.js";
import type { Balance, EntryToken, Limits, Wallet } from "./types.js";

export function createWallet(c: Context) {
  const known = new Map<string, any>(); // tokens with what was shown of their balances, by code
  /** Remembers a token or a balance. Returns whether the balance was another one. */
  const note = (token: EntryToken | Balance) => {
    const before = known.get(token.tokenId);
    const now = { ...before, ...token };
    known.set(token.tokenId, now);
    return before?.amount && (before.amount !== now.amount || before.heldAmount !== now.heldAmount);
  };

  async function read(): Promise<Balance[]> {
    const { balances } = await c.http("user-balance/token-balances");
    balances.filter(note).forEach((b: Balance) => c.emit("balance", b));
    return balances;
  }

  const unknown = (tokenId: string) => new ParlorError("token_not_found", tokenId);

  const wallet: Wallet = {
    balances: read,
    async balance(tokenId) {
      const found = (await read()).find((b) => b.tokenId === tokenId);
      if (!found) throw unknown(tokenId);
      return found;
    },
    ledger: (query) => c.http("user-balance/ledger", { query }),
    format(amount, tokenId) {
      const { metadata, tokenName } = known.get(tokenId) || {};
      if (!metadata) throw unknown(tokenId);
      const decimals = +metadata.decimals;
      let text = typeof amount === "number" ? amount.toFixed(decimals) : amount;
      if (decimals && !/[.]/.test(text)) { // minor units
        text = text.replace(/\d+/, (digits) => digits.padStart(decimals + 1, "0"));
        text = `${text.slice(0, -decimals)}.${text.slice(-decimals)}`;
      }
      return `${text} ${tokenName}`;
    },
    limits: (body?: Limits): Promise<any> => c.http("me/limits", body && { method: "PUT", body }),
  };

  return {
    wallet,
    note,
    /** Emits the balances that changed while nobody listened. */
    async catchUp() {
      if (known.size) await read();
    },
  };
}
