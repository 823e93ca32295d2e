// The words of the search: how a text and a question become terms, for the build and for the page.

const common = new Set((
  "a an and are as at be been but by can do does for from get gets give has have how i if in into is it its just me "
  + "my no not of on one or our should so than that the their them then there these they this to up use used using uses "
  + "happen happens make need run show work want was we what when where which who why will with without would you your").split(" "));

/** Cuts the endings of a word, so that save, saves, saved and saving are one term. */
export function stem(word: string): string {
  if (word.length < 4 || /[_\d]/.test(word)) return word;
  return word.replace(/ies$/, "y").replace(/([^s])s$/, "$1").replace(/(?<=\w{3})(?:ing|ed)$/, "").replace(/(?<=\w{3})e$/, "")
    .replace(/(?<=\w\w)([bdgmnpt])\1$/, "$1");
}

/** Returns the terms of a text, in its order. A code such as room_full is one term, and each of its words is. */
export function termsOf(text: string): string[] {
  const words = text.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase().replace(/['’]s\b/g, "").match(/[a-z0-9]+(?:_[a-z0-9]+)*/g) ?? [];
  return words.flatMap((word) => (word.includes("_") ? [word, ...word.split("_")] : [word]))
    .filter((word) => !common.has(word)).map(stem);
}

/** What a newcomer says, and what the pages say. */
const otherWords: Record<string, string> = {
  "2": "two", "401": "unauthenticated", "403": "forbidden", "404": "not_found", "429": "rate_limited", "500": "internal",
  account: "user", angular: "vite", auth: "sign", authenticate: "sign", avatar: "account", backend: "server", balance: "wallet",
  ban: "kick", based: "shared state turns", begin: "start", browser: "page", bundler: "vite", buy: "purchase",
  cash: "money", chat: "message send", cheat: "security lie", code: "join", coin: "token", computer: "window profile", coop: "room",
  countdown: "deadline turn", create: "add",
  change: "rename", connect: "connection", cors: "origin", crash: "error", currency: "token", delete: "remove", denied: "refused",
  deploy: "running deployment", disconnect: "connection lost reconnect", docker: "deployment", download: "install",
  drop: "lost",
  earn: "payout", elo: "leaderboard", exception: "error", expired: "token_expired", fail: "error", find: "list", fraud: "security",
  gem: "token", getting: "start", handshake: "socket", helm: "deployment", highscore: "score leaderboard", host: "deployment",
  html5: "page", hosting: "deployment", inventory: "assets owned", invite: "join code", iap: "purchase", itch: "origin", item: "asset buy",
  jwt: "token", kubernetes: "deployment", lag: "latency", latency: "lag", library: "install", limit: "limits", lobby: "rooms list",
  local: "window", login: "sign", log: "sign", lose: "lost", lost: "lose", match: "room", matchmaking: "quick", matchmaker: "quick",
  money: "wallet", movement: "position arena", move: "position", multiplayer: "room", name: "rename", netlify: "origin", npm: "install",
  nodejs: "node", oauth: "sign", offline: "connection lost", online: "presence", opponent: "player", package: "install", packet: "frame",
  password: "code invite",
  pay: "payout", payment: "purchase", persist: "save", ping: "latency", price: "buy", private: "code invite", prize: "tournament",
  production: "running deployment", purchase: "buy", ranking: "leaderboard", picture: "avatar", real: "hz", realtime: "hz", reconnect: "connection lost",
  refused: "origin", refund: "cancel", register: "sign", retry: "retryable", reward: "prize", save: "save", scale: "nodes",
  sell: "store buy", shop: "store", simulate: "debug", skin: "asset", slow: "latency", stake: "entry", state: "shared",
  storage: "save", store: "store", sync: "shared", synchronize: "shared", throttled: "rate_limited", timeout: "timeout",
  test: "play window", tutorial: "start", typescript: "vite", unauthorized: "unauthenticated", unity: "engine", vercel: "origin", vue: "vite",
  webpack: "vite", websocket: "socket", win: "payout result", winner: "result report finish", yarn: "install",
};

/** Returns the terms that mean the same as one of a question. */
export const synonyms = new Map(Object.entries(otherWords).map(([word, others]) => [stem(word), others.split(" ").map(stem)]));
