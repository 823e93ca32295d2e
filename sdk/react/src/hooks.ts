// The hooks, for a React and an SDK that the caller has: those of a bundle, or those of a page.
import type { Balance, Options, Parlor, Room, State, User } from "@parlor-games/sdk";
import type { BoardState, Boards } from "@parlor-games/sdk/boards";

/** What the hooks use of React. */
export type ReactParts = Pick<
  typeof import("react"), "createContext" | "createElement" | "useContext" | "useMemo" | "useSyncExternalStore"
>;

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
export type RoomRef<M = any> = Room<M> | string | { code: string } | null | undefined;

/** The component and the hooks. */
export interface Hooks {
  ParlorProvider(props: ParlorProviderProps): import("react").ReactElement;
  useParlor<M = any>(): ParlorState<M>;
  useRoom<M = any>(room: RoomRef<M>): RoomState<M>;
  useBalances(): BalancesState;
  useBoard(board: string | null | undefined, o?: BoardOptions): LiveBoard;
}

/** A value that components share, and its source, which runs while one of them shows it. */
interface Source<T> {
  subscribe(fn: () => void): () => void;
  get(): T;
}

type Start<T> = (set: (change: Partial<T>) => void, get: () => T) => () => void;

function createSource<T extends object>(value: T, start: Start<T>, onStop = () => {}): Source<T> {
  const listeners = new Set<() => void>();
  const get = () => value;
  let stop: (() => void) | undefined;
  let run = 0; // rises at each start, so that a late reply of an earlier one changes nothing

  function set(change: Partial<T>) {
    if (Object.entries(change).every(([name, one]) => value[name as keyof T] === one)) return;
    value = { ...value, ...change };
    listeners.forEach((fn) => fn());
  }

  function subscribe(fn: () => void) {
    const own = () => fn(); // a set has each function once, and React may give the same one twice
    listeners.add(own);
    if (!stop) {
      const own = ++run;
      stop = start((change) => own === run && set(change), get);
    }
    return () => {
      listeners.delete(own);
      // StrictMode and a change of the tree subscribe again at once.
      queueMicrotask(() => {
        if (listeners.size || !stop) return;
        run++;
        stop();
        stop = undefined;
        onStop();
      });
    };
  }

  return { subscribe, get };
}

/** Calls `read` now, and again for each connection until it has succeeded. Returns the function that ends it. */
function readOnce(parlor: Parlor, read: () => Promise<unknown>, set: (change: { error: Error | null }) => void) {
  let isWanted = true;
  const attempt = () => {
    if (!isWanted) return;
    isWanted = false;
    read().then(() => set({ error: null }), (error) => {
      isWanted = error.retryable;
      set({ error });
    });
  };
  attempt();
  return parlor.on("state", (state) => state === "online" && attempt());
}

const copies = new WeakMap<object, Room>(); // the room of each copy
const roomSources = new WeakMap<Room, Source<RoomState>>();

/** Returns a copy of the fields, which the SDK changes in place. It inherits the methods. */
function copyRoom(room: Room, fields: string): Room {
  const { set, value } = room.shared;
  const copy = Object.create(Object.getPrototypeOf(room), { shared: { value: { set, value } } });
  copies.set(Object.assign(copy, JSON.parse(fields)), room);
  return copy;
}

/** Calls `show` with a copy of a room now and after each change. Returns the function that ends it. */
function followRoom(room: Room, show: (copy: Room) => void, shown?: Room) {
  let fields = shown && JSON.stringify(shown);
  let shared = shown?.shared.value;
  function update() {
    const now = JSON.stringify(room);
    if (now === fields && room.shared.value === shared) return;
    fields = now;
    shared = room.shared.value;
    show(copyRoom(room, now));
  }
  update();
  return room.on("change", update);
}

const noRoom: RoomState = { room: null, error: null };
const noBalances: BalancesState = { balances: null, error: null };
const noBoard: LiveBoard = { board: null, error: null };
const noParlor: ParlorState = { parlor: null, state: "idle", user: null, error: null };
const idle = () => () => {};

/** Makes the hooks. A page makes them once: a component finds only the provider of its own hooks. */
export function createHooks(react: ReactParts, sdk: SdkParts): Hooks {
  const Context = react.createContext<Parlor | null | undefined>(undefined);
  const sources = new WeakMap<Parlor, Map<string, Source<any>>>();

  /** Returns the source of a client that has a name, the same one while it runs. */
  function sourceOf<T extends object>(parlor: Parlor, name: string, value: () => T, start: Start<T>): Source<T> {
    const all = sources.get(parlor) || new Map<string, Source<any>>();
    sources.set(parlor, all);
    const source: Source<T> = all.get(name) ||
      createSource(value(), start, () => all.get(name) === source && all.delete(name));
    all.set(name, source);
    return source;
  }

  function useClient(): Parlor | null {
    const parlor = react.useContext(Context);
    if (parlor === undefined) throw new Error("the hooks need a ParlorProvider around them");
    return parlor;
  }

  /** Shows a source. On the server, and to hydrate what came from there, it shows `empty`. */
  const useSource = <T>(source: Source<T> | null | false | undefined | "", empty: T): T =>
    react.useSyncExternalStore(source ? source.subscribe : idle, source ? source.get : () => empty, () => empty);

  return {
    ParlorProvider({ parlor, options, children }) {
      const isBrowser = react.useSyncExternalStore(idle, () => true, () => false);
      // init gives the same client for the same game, so a second render makes no second one.
      const client = react.useMemo(
        () => (isBrowser ? parlor || sdk.init(options!) : null), [isBrowser, parlor, options?.gameId, options?.baseUrl],
      );
      return react.createElement(Context.Provider, { value: client }, children);
    },

    useParlor() {
      const parlor = useClient();
      const read = () => ({ state: parlor!.state, user: parlor!.user });
      return useSource(parlor && sourceOf<ParlorState>(parlor, "", () => ({ ...noParlor, parlor, ...read() }), (set) => {
        const update = () => set(read());
        const off = [parlor.on("state", update), parlor.on("user", update)];
        update();
        parlor.ready.catch((error) => set({ error }));
        return () => off.forEach((stop) => stop());
      }), noParlor);
    },

    useRoom(ref) {
      const parlor = useClient();
      let source: Source<RoomState> | undefined;
      if (typeof ref === "object" && ref && "on" in ref) {
        const room = copies.get(ref) || ref; // a component may pass its copy on
        source = roomSources.get(room);
        if (!source) {
          const copy = copyRoom(room, JSON.stringify(room));
          source = createSource<RoomState>({ room: copy, error: null },
            (set, get) => followRoom(room, (room) => set({ room }), get().room!));
          roomSources.set(room, source);
        }
      } else if (parlor && ref) {
        source = sourceOf<RoomState>(parlor, `room ${JSON.stringify(ref)}`, () => noRoom, (set) => {
          let isOver = false;
          let unfollow = () => {};
          const stop = readOnce(parlor, async () => {
            const room = await parlor.rooms.get(ref);
            if (!isOver) unfollow = followRoom(room, (room) => set({ room }));
          }, set);
          return () => {
            isOver = true;
            unfollow();
            stop();
          };
        });
      }
      return useSource(source, noRoom);
    },

    useBalances() {
      const parlor = useClient();
      return useSource(parlor && sourceOf<BalancesState>(parlor, "balances", () => noBalances, (set, get) => {
        let reads = 0;
        const read = () => {
          const own = ++reads; // a late reply is of the player of before
          return readOnce(parlor, async () => {
            const balances = await parlor.wallet.balances();
            if (own === reads) set({ balances });
          }, set);
        };
        let stop = read();
        const readAgain = () => {
          stop();
          stop = read();
        };
        let userId = parlor.user?.id;
        const off = [
          parlor.on("balance", ({ tokenId, volume, amount, held, heldAmount }) => {
            const { balances } = get();
            if (!balances) return; // they are on their way
            const change = { volume, amount, held, heldAmount };
            if (balances.every((b) => b.tokenId !== tokenId)) readAgain(); // a new token
            else set({ balances: balances.map((b) => (b.tokenId === tokenId ? { ...b, ...change } : b)) });
          }),
          parlor.on("user", ({ user }) => {
            if (userId && userId !== user.id) readAgain();
            userId = user.id;
          }),
        ];
        return () => [stop, ...off].forEach((end) => end());
      }), noBalances);
    },

    useBoard(board, { top = 10, around = 0 } = {}) {
      const parlor = useClient();
      return useSource(parlor && board && sourceOf<LiveBoard>(parlor, `board ${top} ${around} ${board}`, () => noBoard, (set) => {
        if (!sdk.createBoards) throw new TypeError("useBoard needs createBoards: load boards.v1.js");
        return sdk.createBoards(parlor).watch(board, (e) => {
          if (e.type === "changed") set({ board: e, error: null });
          if (e.type === "error") set({ error: e.error });
        }, { top, around });
      }), noBoard);
    },
  };
}
