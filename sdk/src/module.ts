// The module. Loaded from a node, its default address is that node.
import { setScriptOrigin } from "./origin.js";

if (/\/sdk\/[^/]+\.mjs$/.test(import.meta.url)) setScriptOrigin(import.meta.url);

export { init, ParlorError } from "./index.js";
export type * from "./index.js";
