import type { Context } from "./context.js";
import { ParlorError } from "./errors.js";
import type { Balance, EntryToken, Wallet } from "./types.js";

export function createWallet(c: Context) {
  const tokens = new Map<string, EntryToken>();
  const known = new Map<string, string>(); // what was shown of a token, by its code
  /** Remembers what a balance is. Returns whether it was another one. */
  const note = ({ tokenId, amount, heldAmount }: Balance) => {
    const text = `${amount} ${heldAmount}`;
    const before = known.get(tokenId);
    known.set(tokenId, text);
    return before && before !== text;
  };
  const learn = (token: EntryToken) => tokens.set(token.tokenId, token);

  async function read(): Promise<Balance[]> {
    const { balances } = await c.http("user-balance/token-balances");
    balances.forEach(learn);
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
      const token = tokens.get(tokenId);
      if (!token) throw unknown(tokenId);
      const decimals = +token.metadata.decimals;
      let text = typeof amount === "number" ? amount.toFixed(decimals) : amount;
      if (decimals && !/[.]/.test(text)) { // minor units
        text = text.replace(/\d+/, (digits) => digits.padStart(decimals + 1, "0"));
        text = `${text.slice(0, -decimals)}.${text.slice(-decimals)}`;
      }
      return `${text} ${token.tokenName}`;
    },
    limits: (body) => c.http("me/limits", body && { method: "PUT", body }),
  };

  return {
    wallet,
    learn,
    note,
    /** Emits the balances that changed while nobody listened. */
    async catchUp() {
      if (known.size) await read();
    },
  };
}
