// The script for `<script src>`, behind that of the core: it adds Parlor.createBoards.
import { createBoards } from "./boards.js";

(globalThis as any).Parlor.createBoards = createBoards;
