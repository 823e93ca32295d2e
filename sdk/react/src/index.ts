import { init } from "@parlor-games/sdk";
import { createBoards } from "@parlor-games/sdk/boards";
import * as React from "react";
import { createHooks, type Hooks } from "./hooks.js";

export type {
  BalancesState, BoardOptions, Hooks, LiveBoard, ParlorProviderProps, ParlorState, RoomRef, RoomState,
} from "./hooks.js";

const hooks = createHooks(React, { init, createBoards });

/**
 * Gives a client to the components inside it: `<ParlorProvider options={{ gameId: 1 }}>`, or one of your
 * own with `parlor={…}`. It does not close the client when it goes, so that the player keeps the seat:
 * call `parlor.close()`.
 */
export const ParlorProvider: Hooks["ParlorProvider"] = hooks.ParlorProvider;
/** Returns the client, its state and the player: `const { parlor, state, user } = useParlor()`. */
export const useParlor: Hooks["useParlor"] = hooks.useParlor;
/**
 * Shows a room as it changes: `const { room } = useRoom(roomOrId)`. A room by its id or code is followed
 * without a seat, as by `parlor.rooms.get`; null shows none.
 */
export const useRoom: Hooks["useRoom"] = hooks.useRoom;
/** Shows what the player has of every token as it changes: `const { balances } = useBalances()`. */
export const useBalances: Hooks["useBalances"] = hooks.useBalances;
/** Shows a leaderboard as it changes: `const { board } = useBoard("weekly", { top: 10, around: 3 })`. */
export const useBoard: Hooks["useBoard"] = hooks.useBoard;
