import { readFile, rename, writeFile } from "node:fs/promises";
import type { PositionStore } from "./types.js";

/** Keeps positions in a file, which is replaced as a whole. Its folder must exist. */
export function filePositions(path: string): PositionStore {
  return {
    async load() {
      try {
        return JSON.parse(await readFile(path, "utf8"));
      } catch (e: any) {
        if (e.code === "ENOENT") return null;
        throw e;
      }
    },
    async save(positions) {
      await writeFile(`${path}.new`, JSON.stringify(positions));
      await rename(`${path}.new`, path);
    },
  };
}
