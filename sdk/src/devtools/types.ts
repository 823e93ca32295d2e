/** A call of the service as the devtools recorded it. Tokens and secrets in it are "…". */
export interface DebugCall {
  /** Ascending over calls and events. */
  readonly n: number;
  /** When it was sent, in ms since 1970. */
  readonly at: number;
  readonly kind: "http" | "socket";
  /** The method of an HTTP call, else "". */
  readonly method: string;
  /** The address without that of the service, or the type of a message. */
  readonly path: string;
  /** The id of a message. One without an id gets no reply. */
  readonly id?: string;
  readonly idempotencyKey?: string;
  readonly request?: unknown;
  readonly sentBytes: number;
  // What follows is there once there is a reply.
  requestId?: string;
  /** The HTTP status, or that of a message that was refused. */
  status?: number;
  /** The code of an error. */
  code?: string;
  response?: unknown;
  receivedBytes?: number;
  ms?: number;
  /** Why there is no reply. */
  failure?: string;
}

/** An event of the service as the devtools recorded it. */
export interface DebugEvent {
  readonly n: number;
  /** When it came, in ms since 1970. */
  readonly at: number;
  readonly name: string;
  readonly roomId?: string;
  /** The position in its room. */
  readonly seq?: number;
  readonly bytes: number;
  readonly data: unknown;
  /** Whether it was lost on purpose, by `loss`. */
  readonly lost?: true;
}

/** The devtools of a client: `parlor.debug`. */
export interface Debug {
  /** The last 500 calls, oldest first. */
  readonly calls: readonly DebugCall[];
  /** The last 500 events, oldest first. */
  readonly events: readonly DebugEvent[];
  /** Added to each message and reply, in ms. */
  latencyMs: number;
  /** The part of the events of rooms that is lost on its way to the page, 0 to 1. */
  loss: number;
  /** Whether the network is cut. */
  readonly isCut: boolean;
  /** Cuts the network until `resume`. With `offline` the browser also says that it is offline. */
  cut(o?: { offline?: boolean }): void;
  /** Ends the cut. The SDK connects again. */
  resume(): void;
  /** Drops the connections once. The SDK connects again. */
  disconnect(): void;
  /** Returns a test for Node that repeats the HTTP calls and expects the same statuses and codes. */
  writeTest(): string;
  /** Shows the panel in an element of the page. By default it floats above the page. */
  mount(element: Element): void;
}
