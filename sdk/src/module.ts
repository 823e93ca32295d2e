// The module. Loaded from a node, its default address is that node.
import { setScriptOrigin } from "./origin.js";

const { url } = import.meta;
if (/\/sdk\/[^/]+\.mjs$/.test(url)) setScriptOrigin(url);

export { init, ParlorError } from "./index.js";
export type * from "./index.js";
