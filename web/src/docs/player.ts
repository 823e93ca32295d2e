// The SDK for the frames of an example: two frames of one page share its storage, so that each keeps its
// player in memory.
import { init as start, ParlorError, type Options } from "/sdk/v1.mjs";

export const init = <Messages>(options: Options) => start<Messages>({ ...options, storage: false });
export { ParlorError };
