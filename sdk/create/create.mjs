#!/usr/bin/env node
// Writes a new game: npm create parlor my-game -- --template react
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const root = fileURLToPath(new URL(".", import.meta.url));
const templates = ["vanilla", "react", "phaser"];
const usage = `Usage: create-parlor [folder] [--template ${templates.join("|")}] [--url http://localhost:8080]`;

/** Returns the files of a game by path: those that all games have, and those of the template. */
function readTemplate(template, name, url) {
  const files = new Map();
  for (const folder of ["game", template]) {
    const from = join(root, "templates", folder);
    for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath ?? entry.path, entry.name);
      // npm publishes no .gitignore.
      const target = path.slice(from.length + 1).replace(/^_/, ".");
      const text = readFileSync(path, "utf8");
      files.set(target, text.replaceAll("my-game", name).replaceAll("http://localhost:8080", url));
    }
  }
  for (const [archive] of files.get("package.json").matchAll(/vendor\/[\w.-]+\.tgz/g)) {
    files.set(archive, readFileSync(join(root, archive)));
  }
  return files;
}

/** Returns the address of the node that served this package, if one did: npm writes down where a package came from. */
function findNode() {
  try {
    const { packages } = JSON.parse(readFileSync(join(root, "../.package-lock.json"), "utf8"));
    return /^(https?:\/\/.+)\/sdk\/create-parlor-[^/]+\.tgz$/.exec(packages["node_modules/create-parlor"].resolved)?.[1];
  } catch {
    return undefined;
  }
}

function fail(message) {
  console.error(message);
  process.exit(1);
}

let parsed;
try {
  parsed = parseArgs({
    allowPositionals: true,
    options: { template: { type: "string", short: "t" }, url: { type: "string" }, help: { type: "boolean", short: "h" } },
  });
} catch (error) {
  fail(`${error.message}\n${usage}`);
}
const { positionals: [given = "my-game"], values } = parsed;
const { template = "vanilla", help } = values;
const url = (values.url ?? findNode() ?? "http://localhost:8080").replace(/\/+$/, "");
if (help) {
  console.log(usage);
  process.exit(0);
}
if (!templates.includes(template)) fail(`There is no template ${template}.\n${usage}`);
if (!/^https?:\/\/[^/\s]+$/.test(url)) fail(`${url} is no address such as http://localhost:8080.`);
const folder = resolve(given);
// As npm names packages.
const name = basename(folder).toLowerCase().replace(/[^a-z0-9._-]+/g, "-").replace(/^[._-]+/, "") || "my-game";
const files = readTemplate(template, name, url);
const taken = [...files.keys()].filter((path) => existsSync(join(folder, path)));
if (taken.length) fail(`Nothing was written: ${folder} has ${taken.join(", ")}`);
for (const [path, content] of files) {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), content);
}
const word = /^[\w./:\\-]+$/.test(given) ? given : `"${given}"`;
console.log(`# The game is in ${folder}, for the node at ${url}. Next:
cd ${word}
npm install
npm run dev`);
