// Writes api.md: every public declaration on lines of its own, for reviews to read in a diff.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Returns the report: the types of dist without comments. */
export function apiReport() {
  const types = readFileSync(new URL("../dist/v1.d.mts", import.meta.url), "utf8");
  const declarations = types.replace(/\/\*[\s\S]*?\*\//g, "").replace(/[ \t]+$/gm, "").replace(/\n{2,}/g, "\n").trim();
  return `# Public surface\n\nWritten by \`npm run build\`. A change here is a change for every game.\n\n` +
    `\`\`\`ts\n${declarations}\n\`\`\`\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(new URL("../api.md", import.meta.url), apiReport());
}
