// Who may take stones, and who has won: the two players decide. Each writes their own moves, both report
// the same end, and the service pays.
import type { Room } from "@parlor-games/sdk";

export const allStones = 12;
export const settlement = "consensus";

const movesOf = (room: Room, player: number) => (room.shared.value[`moves.${player}`] ?? []) as number[];
const playersOf = (room: Room) => room.seats.map((seat) => seat.userId);

/** Returns how many stones are left, and whose turn it is. */
export function readTable(room: Room): { stones: number; next: number | undefined } {
  const players = playersOf(room);
  const moves = players.flatMap((player) => movesOf(room, player));
  return { stones: moves.reduce((left, taken) => left - taken, allStones), next: players[moves.length % 2] };
}

/** Takes stones. */
export const take = (room: Room, me: number, stones: number): Promise<unknown> =>
  room.shared.set({ [`moves.${me}`]: [...movesOf(room, me), stones] });

/** Reports the end: the one whose turn it would be did not take the last stone. */
export function end(room: Room): Promise<unknown> {
  const { next } = readTable(room);
  return room.finish(playersOf(room).map((userId) => ({ userId, place: userId === next ? 2 : 1 })));
}
