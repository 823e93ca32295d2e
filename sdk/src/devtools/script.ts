// Writes the recorded calls of a page as a test that runs by itself.
import type { DebugCall, DebugEvent } from "./types.js";

/** What a test is written from. */
export interface Recording {
  base: string;
  gameId: string | number;
  user: { id: number; username: string } | null;
  calls: readonly DebugCall[];
  events: readonly DebugEvent[];
}

const head = `import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { test } from "node:test";

const base = process.env.PARLOR_URL ?? BASE;
const serverKey = process.env.PARLOR_SERVER_KEY; // the game's server reports results

/** Calls the service and expects a status, and the code of an error. Returns the body of the reply. */
async function call(player, method, path, body, status, code) {
  const headers = {};
  if (player) headers.Authorization = \`Bearer \${player.accessToken}\`;
  if (body) headers["Content-Type"] = "application/json";
  if (method === "POST") headers["Idempotency-Key"] = randomUUID();
  const response = await fetch(\`\${base}/api/v1/\${path}\`, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  assert.equal(response.status, status, \`\${method} \${path}: \${text}\`);
  const answer = text ? JSON.parse(text) : undefined;
  assert.equal(answer?.code, code ?? answer?.code);
  return answer;
}

/** Signs in a new guest. */
const signIn = (username) => call(null, "POST", "auth/guest", {
  gameId: GAME, username, deviceSecret: randomBytes(32).toString("hex"),
}, 201);
`;

const isNameOfPlayer = /^(user|player|winner|loser|to|from)(Ids?)?$|UserIds?$/i;

/** Writes a value of JavaScript. An entry of `names`, such as a room's id, becomes its expression. */
function literal(value: unknown, names: Map<unknown, string>, member = ""): string {
  const name = typeof value === "number" && !isNameOfPlayer.test(member) ? undefined : names.get(value);
  if (name) return name;
  if (Array.isArray(value)) return `[${value.map((one) => literal(one, names, member)).join(", ")}]`;
  if (!value || typeof value !== "object") return JSON.stringify(value) ?? "undefined";
  const members = Object.entries(value).map(([key, one]) => {
    const quoted = /^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key);
    return `${quoted}: ${literal(one, names, key)}`;
  });
  return members.length ? `{ ${members.join(", ")} }` : "{}";
}

/** Writes the path of a call, with the ids in it by their names. */
function pathLiteral(path: string, names: Map<unknown, string>): string {
  let before = "";
  const parts = path.split(/([/?&=])/).map((part) => {
    const isNumber = /^\d+$/.test(part);
    const isOfPlayer = isNumber && /^friends$|user/i.test(before);
    const name = isOfPlayer ? names.get(Number(part)) : names.get(part);
    if (/\w/.test(part)) before = part;
    return name ? `\${${name}}` : part;
  });
  const text = parts.join("");
  return text === path ? JSON.stringify(path) : `\`${text}\``;
}

/** The path of a call below /api/v1, or "" for another address. */
const pathOf = (call: DebugCall) => /^\/api\/v1\/(.+)/.exec(call.path)?.[1] || "";

/** Returns the calls that were answered, once for each key, and of a poll the first. */
function chooseCalls(calls: readonly DebugCall[]): DebugCall[] {
  const answered = calls.filter((call) => {
    const path = pathOf(call);
    return call.kind === "http" && path && !/^auth\//.test(path) &&
      call.status && call.status < 500 && call.status !== 401 && call.status !== 429;
  });
  return answered.filter(({ idempotencyKey: key, method, path }, i) => {
    if (key) return !answered.some((other, j) => j > i && other.idempotencyKey === key);
    const before = answered[i - 1];
    return method !== "GET" || before?.method !== method || before.path !== path;
  });
}

/**
 * Returns the text of a test. It repeats the calls of the player, and what other players did to the
 * rooms of this page, with guests of its own. It expects the recorded status and code of each.
 */
export function writeScript({ base, gameId, user, calls, events }: Recording): string {
  const names = new Map<unknown, string>(); // of ids, as expressions
  const players = new Map<number, string>(); // by user id
  const rooms = new Map<string, any>(); // as they were seen first
  const repeated = new Set<string>(); // events, each by its room and seq
  const lines: string[] = [];
  const chosen = chooseCalls(calls);

  (function see(value: any) {
    if (!value || typeof value !== "object") return;
    if (value.roomId && value.maxPlayers && value.creator && !rooms.has(value.roomId)) rooms.set(value.roomId, value);
    Object.values(value).forEach(see);
  })(calls.map(({ response }) => response));

  function add(line: string) {
    lines.push(`  ${line}`);
  }

  /** Returns the name of a player, who signs in before the first use. */
  function player(id: number, username?: string): string {
    let name = players.get(id);
    if (!name) {
      name = `player${players.size + 1}`;
      players.set(id, name);
      names.set(id, `${name}.user.id`);
      const isMe = id === user?.id;
      add(`const ${name} = ${isMe ? "process.env.PARLOR_TOKEN ? await me(process.env.PARLOR_TOKEN) : " : ""}` +
        `await signIn(${JSON.stringify(username || `Player ${players.size}`)});`);
    }
    return name;
  }

  /** Writes a call. Its reply gets a name when it has a room that was not seen yet. */
  function addCall(
    who: string, method: string, path: string, body: unknown, status: number, code?: string, reply?: any,
  ) {
    const isNew = reply?.roomId && status < 300 && !names.has(reply.roomId);
    const roomName = `room${[...names.values()].filter((one) => /^room\d+\.roomId$/.test(one)).length + 1}`;
    const values = [
      who, JSON.stringify(method), pathLiteral(path, names), literal(body, names), String(status),
      ...code ? [JSON.stringify(code)] : [],
    ];
    add(`${isNew ? `const ${roomName} = ` : ""}await call(${values.join(", ")});`);
    if (!isNew) return;
    names.set(reply.roomId, `${roomName}.roomId`);
    if (reply.code) names.set(reply.code, `${roomName}.code`);
  }

  /** Makes a room that the recording does not make, as it was when it was seen first. */
  function makeRoom(room: any) {
    const { roomId, creator, participants = [], status, entryToken, roomEntry } = room;
    const { maxPlayers, minPlayers, metadata, settlement } = room;
    if (names.has(roomId)) return;
    const settings = {
      maxPlayers, minPlayers, metadata, settlement,
      ...entryToken && { entryTokenId: entryToken.id, roomEntry: String(roomEntry) },
    };
    addCall(player(creator.id, creator.username), "POST", "game-session/create", settings, 201, undefined, room);
    const joinsLater = chosen.some((call) => /join$/.test(call.path) && (call.request as any)?.roomId === roomId);
    for (const { id, username } of participants) {
      if (id === creator.id || (id === user?.id && joinsLater)) continue;
      addCall(player(id, username), "POST", "game-session/join", { roomId }, 200);
    }
    if (status === "STARTED") addCall(player(creator.id), "POST", "game-session/start", { roomId }, 200);
  }

  /** Repeats what another player or the game's server did. */
  function addEvent({ name, roomId, seq, data }: any) {
    const room = rooms.get(roomId);
    const key = `${roomId} ${seq}`;
    if (!room || !names.has(roomId) || repeated.has(key)) return;
    repeated.add(key);
    const act = (id: number, verb: string, more?: object) =>
      id !== user?.id && addCall(player(id), "POST", `game-session/${verb}`, { roomId, ...more }, 200);
    if (name === "room.joined" && data.user.id !== room.creator.id) {
      if (data.user.id !== user?.id) player(data.user.id, data.user.username);
      act(data.user.id, "join");
    } else if (name === "room.left" && /^(left|forfeited)$/.test(data.reason)) act(data.userId, "leave");
    else if (name === "room.ready") act(data.userId, "ready", { ready: data.ready });
    else if (name === "room.started" && data.by === "host") act(room.creator.id, "start");
    else if (name === "room.finished" && room.settlement === "server" && data.results?.length) {
      add("if (!serverKey) return t.diagnostic(\"stopped here: PARLOR_SERVER_KEY is not set\");");
      const { results } = data;
      addCall("{ accessToken: serverKey }", "POST", "game-session/finish", { roomId, results }, 200);
    }
  }

  const me = user ? player(user.id, user.username) : "null";
  for (const entry of [...chosen, ...events].sort((a, b) => a.n - b.n)) {
    if (!("kind" in entry)) {
      if (!entry.lost) addEvent(entry);
      continue;
    }
    const { request, response, method, status, code } = entry as { request: any; response: any } & DebugCall;
    const path = pathOf(entry);
    const query = new URLSearchParams(path.split("?")[1]);
    const isAsked = (room: any) =>
      room.roomId === (request?.roomId || query.get("roomId")) || room.code === query.get("code");
    const room = [...rooms.values()].find(isAsked);
    if (room) makeRoom(room);
    addCall(me, method, path, request, status!, code, response?.items ? undefined : response);
  }

  const messages = calls.filter((call) => call.kind === "socket").length;
  const others = calls.length - messages - chosen.length;
  return `// What a page did at ${base}${user ? ` as ${user.username}` : ""}, recorded by the devtools of Parlor.
// Node 20 or newer runs it: PARLOR_URL=${base} node --test parlor.test.mjs
// PARLOR_TOKEN, an access token, plays as its player instead of a new guest.
// Left out: ${messages} messages over the socket, and ${others} calls that sign in, poll, had no reply
// or are of another service.
${head.replace("BASE", JSON.stringify(base)).replace("GAME", JSON.stringify(Number(gameId)))}
/** The player of an access token. */
const me = async (accessToken) => ({ accessToken, user: await call({ accessToken }, "GET", "me", undefined, 200) });

test("what the page did", async (t) => {
${lines.join("\n")}
});
`;
}
