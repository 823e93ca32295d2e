import type { ParlorError } from "./errors.js";
import type { HttpCall } from "./http.js";
import type { Session } from "./session.js";
import type { Socket } from "./socket.js";
import type { KeyValue } from "./storage.js";
import type { Options, State, User } from "./types.js";

/** What the modules of one client share. */
export interface Context {
  options: Options;
  /** The address of the service, without a slash at its end. */
  base: string;
  /** Begins the name of everything that this client stores. */
  prefix: string;
  shelf: KeyValue;
  state: State;
  user: User | null;
  http<T = any>(path: string, call?: HttpCall): Promise<T>;
  session: Session;
  socket: Socket;
  emit(event: string, value: unknown): boolean;
  /** Emits an error that no call can report; without a listener it goes to the console. */
  reportError(e: unknown): void;
  /** Ends the client with an error that will not mend. */
  fail(e: ParlorError): void;
  time(): number;
  /** Corrects the clock by a time that the service wrote just now, or earlier unless `exact`. */
  syncClock(ms: number, exact?: boolean): void;
  /** Called when the player becomes known or changes. */
  onUser(user: User): void;
}
