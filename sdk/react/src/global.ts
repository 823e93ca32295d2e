// The script for `<script src>`, behind that of the core: it adds Parlor.createHooks. The React of the
// page is an argument, as React has no script of its own from version 19 on.
import { createHooks, type ReactParts } from "./hooks.js";

const { Parlor } = globalThis as any;
Parlor.createHooks = (react: ReactParts) => createHooks(react, Parlor);
