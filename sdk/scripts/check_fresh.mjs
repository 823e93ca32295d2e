// Fails when src/generated/, dist/ or react/dist/ is not what the sources give.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isMadeLast, stalePackages } from "./pack.mjs";

/** Returns the names of the files of a folder that differ from `expected`, without those of stalePackages. */
export function staleFiles(folder, expected) {
  const url = new URL(`../${folder}/`, import.meta.url);
  const names = new Set([...readdirSync(url).filter((name) => !isMadeLast(name)), ...Object.keys(expected)]);
  const read = (name) => {
    try {
      return readFileSync(new URL(name, url), "utf8");
    } catch {
      return undefined;
    }
  };
  return [...names].filter((name) => read(name) !== expected[name]).map((name) => `${folder}/${name}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { generate } = await import("./generate.mjs");
  const { buildAll, buildReact } = await import("./build.mjs");
  const stale = [
    ...staleFiles("src/generated", await generate()), ...staleFiles("dist", await buildAll()),
    ...staleFiles("react/dist", await buildReact()), ...stalePackages(),
  ];
  if (stale.length) {
    console.error(`stale, run npm run generate && npm run build: ${stale.join(", ")}`);
    process.exit(1);
  }
  console.log("everything that is generated is fresh");
}
