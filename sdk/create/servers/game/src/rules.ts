// Who may take stones, and who has won: the game's server decides, in the folder server. It alone writes
// the room's shared state, and it ends the room.
import type { Room } from "@parlor-games/sdk";

export const allStones = 12;
export const settlement = "server";

/** Returns how many stones are left, and whose turn it is, as the server has written it. */
export function readTable(room: Room): { stones: number; next: number | undefined } {
  const { stones = allStones, next } = room.shared.value as { stones?: number; next?: number };
  return { stones, next };
}

/** Asks the server to take stones. */
export const take = (room: Room, _me: number, stones: number): Promise<unknown> => room.call("take", { stones });

/** The server ends the room. */
export const end = async (_room: Room): Promise<unknown> => undefined;
