// Packs the packages that a node serves, as npm publishes them: the same files below package/. The
// same files give the same archive, whichever npm lists them; only gzip differs between versions of Node.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";
import { copyPackages } from "./vendor.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");

/** The folders of the packages, in this order: the last one contains those before it. */
export const packageFolders = ["", "react", "create"].filter((name) => existsSync(join(root, name, "package.json")));

/** Names of dist that are made from the other files of dist, and are in no package. */
export const isMadeLast = (name) => name.endsWith(".tgz") || name === "integrity.json";

/** Returns the paths of the files that npm publishes of a package. */
export function listFiles(folder) {
  if (folder === "create") copyPackages(); // they are in no commit
  const args = ["pack", "--dry-run", "--json", "--ignore-scripts", "--silent"];
  const [{ files }] = JSON.parse(execFileSync("npm", args, { cwd: join(root, folder), encoding: "utf8" }));
  return files.map(({ path }) => path).sort();
}

// 26 October 1985, as npm writes it.
const modified = 499_162_500;

/** Returns a tar archive (POSIX.1-1988, ustar) of files, by path. */
export function tar(files) {
  const parts = [];
  for (const [path, content] of files) {
    const header = Buffer.alloc(512);
    if (header.write(path) > 100) throw new Error(`${path} is too long for a header`);
    const octal = (number, at, length) => header.write(number.toString(8).padStart(length - 1, "0"), at);
    octal(0o644, 100, 8);
    octal(0, 108, 8);
    octal(0, 116, 8);
    octal(content.length, 124, 12);
    octal(modified, 136, 12);
    header.write("        0", 148); // the checksum counts as spaces; then the type, a file
    header.write("ustar\x0000", 257);
    octal(header.reduce((sum, byte) => sum + byte, 0), 148, 7);
    header.write("\0 ", 154);
    parts.push(header, content, Buffer.alloc(-content.length & 511));
  }
  return Buffer.concat([...parts, Buffer.alloc(1024)]);
}

/** Returns the name of a package's archive on a node, and the archive without compression. */
function packPackage(folder) {
  const { name, version } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
  const files = listFiles(folder).map((path) => [`package/${path}`, readFileSync(join(root, folder, path))]);
  return [`${name.replace("@parlor-games/", "parlor-")}-${version}.tgz`, tar(files)];
}

/** Returns integrity.json: SHA-384 of each numbered script, as in pages, and SHA-512 of each package, as in lockfiles. */
function integrity(folder) {
  const digest = (algorithm, name) =>
    `${algorithm}-${createHash(algorithm).update(readFileSync(join(folder, name))).digest("base64")}`;
  const names = readdirSync(folder).sort();
  return `${JSON.stringify(Object.fromEntries([
    ...names.filter((name) => /^\d+\.\d+\.\d+\.m?js$/.test(name)).map((name) => [name, digest("sha384", name)]),
    ...names.filter((name) => name.endsWith(".tgz")).map((name) => [name, digest("sha512", name)]),
  ]), null, 2)}\n`;
}

/** Writes the packages and integrity.json to dist, which has the other files. */
export function writePackages() {
  for (const folder of packageFolders) {
    const [name, archive] = packPackage(folder);
    writeFileSync(join(dist, name), gzipSync(archive, { level: 9 }));
  }
  writeFileSync(join(dist, "integrity.json"), integrity(dist));
}

/** Returns the names of the packages and digests in a folder that differ from what the other files of dist give. */
export function stalePackages(folder = dist) {
  const packed = new Map(packageFolders.map(packPackage));
  const read = (name) => (existsSync(join(folder, name)) ? readFileSync(join(folder, name)) : undefined);
  const isFresh = (name) => {
    const [archive, expected] = [read(name), packed.get(name)];
    return archive && expected && gunzipSync(archive).equals(expected);
  };
  const names = new Set([...readdirSync(folder).filter((name) => name.endsWith(".tgz")), ...packed.keys()]);
  const stale = [...names].filter((name) => !isFresh(name));
  if (read("integrity.json")?.toString() !== integrity(folder)) stale.push("integrity.json");
  return stale.map((name) => `dist/${name}`);
}
