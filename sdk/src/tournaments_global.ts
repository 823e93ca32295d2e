// The script for `<script src>`, behind that of the core: it adds Parlor.createTournaments.
import { createTournaments } from "./tournaments.js";

(globalThis as any).Parlor.createTournaments = createTournaments;
