// Plays with the client of orval. It has the address of the node since it was generated.
import * as api from "./client/api";
import { play } from "./story";

const as = (token: string, key?: string): RequestInit => ({
  headers: { Authorization: `Bearer ${token}`, ...(key === undefined ? {} : { "Idempotency-Key": key }) },
});

/** Returns the body of a success, or throws the problem. */
function done<R extends { status: number; data: unknown }>(response: R): Extract<R, { status: 200 | 201 }>["data"] {
  if (response.status >= 300) throw new Error(JSON.stringify(response.data));
  return response.data;
}

await play({
  balances: async (token) => done(await api.tokenBalances(as(token))),
  createRoom: async (token, body) => done(await api.createRoom(body, as(token))),
  getRoom: async (token, roomId) => done(await api.getRoom({ roomId }, as(token))),
  joinRoom: async (token, roomId) => done(await api.joinRoom({ roomId }, as(token))),
  startRoom: async (token, roomId) => done(await api.startRoom({ roomId }, as(token))),
  finishRoom: async (token, key, body) => done(await api.finishRoom(body, as(token, key))),
  purchase: async (token, key, asset) => done(await api.purchase(asset, {}, as(token, key))),
  submitScore: async (token, board, score) => done(await api.submitScore(board, { score }, undefined, as(token))),
  createTournament: async (token, body) => done(await api.createTournament(1, body, as(token))),
  joinTournament: async (token, id) => done(await api.joinTournament(id, {}, as(token))),
  startTournament: async (token, id) => done(await api.startTournament(1, id, {}, as(token))),
  getTournament: async (token, id) => done(await api.getTournament(id, undefined, as(token))),
  listMatches: async (token, id) => done(await api.listMatches(id, undefined, as(token))),
});
