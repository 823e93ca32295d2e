// The game's own server. It rolls the dice and reports who won: a page could lie about both.
import { network } from "./plug";

/** What the referee tells a page before it plays. */
export interface Rules {
  gameId: number;
  entryTokenId: number;
  entry: string; // a decimal of the token
  finishLine: number; // steps
  seconds: number; // of a race
  cooldownMs: number; // between two moves of a player
}

/** One roll. Moves of a race are numbered from 1 without a gap. */
export interface Move {
  n: number;
  userId: number;
  rolled: number;
  steps: number; // of this player, all moves together
}

export const fetchRules = async (): Promise<Rules> => (await network.fetch("/referee")).json();

/** Returns the moves after a number; none while the referee does not know the race or is out of reach. */
export async function fetchMoves(roomId: string, after: number): Promise<Move[]> {
  try {
    const response = await network.fetch(`/referee/races/${roomId}?after=${after}`);
    return response.ok ? (await response.json()).moves : [];
  } catch {
    return []; // without a network: asked again when it is back
  }
}

/** Rolls. The access token tells the referee who moves: it asks the API whose it is. */
export async function requestMove(roomId: string, accessToken: string): Promise<Move> {
  const response = await network.fetch(`/referee/races/${roomId}/moves`, {
    method: "POST", headers: { Authorization: `Bearer ${accessToken}` },
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.detail);
  return answer;
}
