// Plays with the client of @hey-api/openapi-ts.
import * as api from "./client";
import { client } from "./client/client.gen";
import { play } from "./story";

client.setConfig({ baseUrl: process.env.URL, throwOnError: true });
const as = (auth: string) => ({ auth, throwOnError: true }) as const;

await play({
  balances: async (token) => (await api.tokenBalances(as(token))).data,
  createRoom: async (token, body) => (await api.createRoom({ ...as(token), body })).data,
  getRoom: async (token, roomId) => (await api.getRoom({ ...as(token), query: { roomId } })).data,
  joinRoom: async (token, roomId) => (await api.joinRoom({ ...as(token), body: { roomId } })).data,
  startRoom: async (token, roomId) => (await api.startRoom({ ...as(token), body: { roomId } })).data,
  finishRoom: async (token, key, body) =>
    (await api.finishRoom({ ...as(token), headers: { "Idempotency-Key": key }, body })).data,
  purchase: async (token, key, gameAssetId) =>
    (await api.purchase({ ...as(token), headers: { "Idempotency-Key": key }, path: { gameAssetId } })).data,
  submitScore: async (token, board, score) => (await api.submitScore({ ...as(token), path: { board }, body: { score } })).data,
  createTournament: async (token, body) =>
    (await api.createTournament({ ...as(token), path: { gameId: 1 }, body })).data,
  joinTournament: async (token, tournamentId) => (await api.joinTournament({ ...as(token), path: { tournamentId } })).data,
  startTournament: async (token, tournamentId) =>
    (await api.startTournament({ ...as(token), path: { gameId: 1, tournamentId } })).data,
  getTournament: async (token, tournamentId) => (await api.getTournament({ ...as(token), path: { tournamentId } })).data,
  listMatches: async (token, tournamentId) => (await api.listMatches({ ...as(token), path: { tournamentId } })).data,
});
