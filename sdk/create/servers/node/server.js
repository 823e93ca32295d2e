// The game's server. Players call it, it decides, and the service pays. The table is in the room's shared
// state, which players cannot write, so this program keeps nothing: start and stop it at any time, or
// start several, each with its SHARE: "0/2" and "1/2" are the two halves of the rooms.
import * as Parlor from "@parlor-games/sdk/server";

const allStones = 12;
const server = Parlor.server({ url: process.env.URL, key: process.env.SERVER_KEY, share: process.env.SHARE });

/** Returns a room with its table: how many stones are left, and whose turn it is. */
async function read(roomId) {
  const room = await server.room(roomId);
  const players = room.seats.map((seat) => seat.userId);
  return { room, players, stones: allStones, next: players[0], ...room.shared?.value };
}

/** Ends a room whose last stone is taken. The next player is the one who did not take it. */
async function settle(roomId) {
  const { room, players, stones, next } = await read(roomId);
  if (room.status !== "STARTED" || stones > 0) return;
  const results = players.map((userId) => ({ userId, place: userId === next ? 2 : 1 }));
  await server.finish(roomId, results, { key: `finish-${roomId}` });
}

/** Lays the stones on the table of a room that has started. */
async function begin(roomId) {
  const { room, stones, next } = await read(roomId);
  if (room.status === "STARTED" && !room.shared?.version) await server.setState(roomId, { stones, next }, { version: 0 });
}

server.on("room.started", ({ roomId }) => begin(roomId));

server.onCall("take", async ({ roomId, from, payload }) => {
  const { room, players, stones, next } = await read(roomId);
  const taken = payload?.stones;
  if (room.status !== "STARTED" || from !== next) throw new Parlor.GameError("not_your_turn", "It is the other player's turn.");
  if (!(Number.isInteger(taken) && taken >= 1 && taken <= Math.min(3, stones))) throw new Parlor.GameError("wrong_number");
  const left = { stones: stones - taken, next: players.find((player) => player !== from) };
  await server.setState(roomId, left, { version: room.shared?.version ?? 0 }); // refused, if another move was first
  await settle(roomId);
  return left;
});

// After a start of this program, and after a gap: what it has missed.
server.onRoom(async ({ roomId }) => {
  await begin(roomId);
  await settle(roomId);
});
server.on("state", console.log);
server.on("error", console.error);
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => server.close());
