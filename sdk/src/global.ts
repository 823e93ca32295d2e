// The script for `<script src>`: its global is Parlor.
import { init, ParlorError } from "./index.js";
import { setScriptOrigin } from "./origin.js";

setScriptOrigin((globalThis.document?.currentScript as HTMLScriptElement | null)?.src);
(globalThis as any).Parlor = { init, ParlorError };
