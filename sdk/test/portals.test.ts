// The server of the Discord recipe, as it stands in the document: Discord is a stand-in, the node
// is real.
import { readFileSync } from "node:fs";
import ts from "typescript";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startNode, type RealNode } from "./node.js";

let node: RealNode;

beforeAll(async () => { node = await startNode(); }, 300_000);
afterAll(() => node?.stop());

/** A process of the server. */
function startServer() {
  const recipe = readFileSync(new URL("../../web/src/docs/content/recipes/discord.md", import.meta.url), "utf8");
  const [, ...blocks] = [...recipe.matchAll(/```typescript\n([\s\S]*?)```/g)].map((m) => m[1]);
  const code = ts.transpile(`${blocks.join("\n")}\nreturn { signIn, findRoom };`, { target: ts.ScriptTarget.ES2022 });
  const discord = async (address: string, request: any) => {
    if (address === "https://discord.com/api/oauth2/token") {
      return Response.json({ access_token: request.body.get("code") });
    }
    if (address !== "https://discord.com/api/users/@me") return fetch(address, request);
    const id = request.headers.Authorization.replace("Bearer ", "");
    return Response.json({ id, username: `player ${id}` });
  };
  const env = { url: node.url, serverKey: node.serverKey, clientId: "client", clientSecret: "secret" };
  return new Function("env", "fetch", code)(env, discord) as {
    signIn(input: { code: string }): Promise<{ accessToken: string }>;
    findRoom(input: { instanceId: string; accessToken: string }): Promise<{ roomId: string }>;
  };
}

it("players who open one instance at once are in one room, and an account is one player", async () => {
  const server = startServer();
  const tokens = await Promise.all(["1", "2", "3"].map(async (code) => (await server.signIn({ code })).accessToken));
  const found = await Promise.all(tokens.map((accessToken) => server.findRoom({ instanceId: "i-1", accessToken })));
  const [{ roomId }] = found as [{ roomId: string }];
  expect(found).toEqual([{ roomId }, { roomId }, { roomId }]);
  const joined = [];
  for (const token of tokens) joined.push(await node.call(token, "POST", "game-session/join", { roomId }));
  expect(joined.at(-1).participants.map((user: any) => user.username)).toEqual(["player 1", "player 2", "player 3"]);
  // The server begins anew, and the same player is first: the key gives the same room.
  const next = startServer();
  const { accessToken } = await next.signIn({ code: "1" });
  expect(await next.findRoom({ instanceId: "i-1", accessToken })).toEqual({ roomId });
  expect((await next.findRoom({ instanceId: "i-2", accessToken })).roomId).not.toBe(roomId);
});
