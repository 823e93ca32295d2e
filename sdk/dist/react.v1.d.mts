import type { Balance, Options, Parlor, Room, State, User } from "./v1.mjs";
import type { BoardState, Boards } from "./boards.v1.mjs";
/** What the hooks use of React. */
export type ReactParts = Pick<typeof import("react"), "createContext" | "createElement" | "useContext" | "useMemo" | "useSyncExternalStore">;
/** What the hooks use of the SDK. */
export interface SdkParts {
    init(options: Options): Parlor;
    /** For `useBoard` only. */
    createBoards?(parlor: Parlor): Boards;
}
/** The client of a game. Either `parlor` or `options`. */
export interface ParlorProviderProps {
    /** A client that `init` gave. */
    parlor?: Parlor;
    /** The options of `init`, which is called in the browser only. Another `gameId` or `baseUrl` is another client. */
    options?: Options;
    /** The components that use the hooks. */
    children?: import("react").ReactNode;
}
/** The client and where it stands. */
export interface ParlorState<M = any> {
    /** Null on the server, and for the first render of a page that came from one. */
    parlor: Parlor<M> | null;
    /** The state of the connection; `idle` without a client. */
    state: State;
    /** Null until the first sign-in has ended. */
    user: User | null;
    /** Why the client never came online and will not, such as `forbidden`; else null. */
    error: Error | null;
}
/** A room, as it was when the component was rendered. */
export interface RoomState<M = any> {
    /**
     * A copy of the room, a new one for each change, with the methods of the room. Null until the room
     * was read.
     */
    room: Room<M> | null;
    /** Why the room could not be read, such as `room_not_found`; else null. */
    error: Error | null;
}
/** What the player has. */
export interface BalancesState {
    /** Null until they were read. */
    balances: Balance[] | null;
    /** Why they could not be read; else null. */
    error: Error | null;
}
/** What a leaderboard shows. */
export interface LiveBoard {
    /** Null until it was read. */
    board: BoardState | null;
    /** Why it is watched no longer, such as `board_not_found`; else null. */
    error: Error | null;
}
/** Which entries of a leaderboard. */
export interface BoardOptions {
    /** How many entries from the first on, 1 to 100; by default 10. */
    top?: number;
    /** How many entries around the player's own, 1 to 25; by default none. */
    around?: number;
}
/** Which room: one that a call gave, its id, its code, or none yet. */
export type RoomRef<M = any> = Room<M> | string | {
    code: string;
} | null | undefined;
/** The component and the hooks. */
export interface Hooks {
    ParlorProvider(props: ParlorProviderProps): import("react").ReactElement;
    useParlor<M = any>(): ParlorState<M>;
    useRoom<M = any>(room: RoomRef<M>): RoomState<M>;
    useBalances(): BalancesState;
    useBoard(board: string | null | undefined, o?: BoardOptions): LiveBoard;
}
/** Makes the hooks. A page makes them once: a component finds only the provider of its own hooks. */
export declare function createHooks(react: ReactParts, sdk: SdkParts): Hooks;

export {};
