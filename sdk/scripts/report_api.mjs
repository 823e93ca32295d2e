// Writes api.md: every public declaration on lines of its own, for reviews to read in a diff.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Returns the declarations of a file of dist without comments. */
function readDeclarations(name) {
  const types = readFileSync(new URL(`../dist/${name}`, import.meta.url), "utf8");
  return types.replace(/\/\*[\s\S]*?\*\//g, "").replace(/[ \t]+$/gm, "").replace(/\n{2,}/g, "\n").trim();
}

/** Returns the report: what the core declares, and what the entry point of game servers exports. */
export function apiReport() {
  const server = readDeclarations("server.v1.d.mts").split(/\n(?=(?:export |declare |type |interface )+)/)
    .filter((one) => one.startsWith("export ") && !one.startsWith("export type Code ")).join("\n");
  return `# Public surface\n\nWritten by \`npm run build\`. A change here is a change for every game.\n\n` +
    `\`\`\`ts\n${readDeclarations("v1.d.mts")}\n\`\`\`\n\n## @parlor-games/sdk/server\n\n\`\`\`ts\n${server}\n\`\`\`\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(new URL("../api.md", import.meta.url), apiReport());
}
