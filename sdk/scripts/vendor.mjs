// Copies the packages that a new game contains from dist/ to create/vendor/, before create-parlor is packed.
import { copyFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const dist = fileURLToPath(new URL("../dist/", import.meta.url));
const vendor = fileURLToPath(new URL("../create/vendor/", import.meta.url));

export function copyPackages() {
  rmSync(vendor, { recursive: true, force: true });
  mkdirSync(vendor);
  const packages = readdirSync(dist).filter((name) => /^parlor-.*\.tgz$/.test(name));
  for (const name of packages) copyFileSync(join(dist, name), join(vendor, name));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) copyPackages();
