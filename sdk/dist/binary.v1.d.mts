/** A message of another player. */
export interface BinaryMessage {
    roomId: string;
    /** The player who sent it; 0: the game's server. */
    from: number;
    /** The game's number for the kind of message. */
    op: number;
    payload: Uint8Array;
}
/** Options of a message as bytes. */
export interface BinarySendOptions {
    /** Of such messages with this op that wait for a slow player, only the newest is kept. */
    latest?: boolean;
}
/** A lane for messages as bytes, beside the messages of the client. */
export interface BinaryLane {
    /** For the option `WebSocket` of `init`. */
    readonly WebSocket: any;
    /**
     * Sends bytes to the other players of a room, at most 8 KiB. Returns false when it was dropped:
     * there is no connection, the room is not followed, or too much was sent. Throws a RangeError.
     */
    send(roomId: string, op: number, payload: Uint8Array, o?: BinarySendOptions): boolean;
    /** Adds a listener, and returns the function that removes it. */
    onMessage(fn: (m: BinaryMessage) => void): () => void;
}
/**
 * Makes a lane for the messages of one client:
 * `const lane = createBinaryLane(); const parlor = init({ gameId, WebSocket: lane.WebSocket })`.
 * The nodes must be of a version that knows it.
 */
export declare function createBinaryLane(o?: {
    WebSocket?: any;
}): BinaryLane;

export {};
