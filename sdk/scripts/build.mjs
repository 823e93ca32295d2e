// Builds dist/ and react/dist/: a module, a CommonJS file, a script with the global Parlor, their types, the
// packages that a node serves, and the digests for `integrity`. The same sources give the same bytes.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { minify } from "terser";
import { writePackages } from "./pack.mjs";
import { bundleTypes } from "./types.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

// Names of properties that only the SDK itself sees, and short ones for them. None of the long ones may
// be on the wire, in storage, in the surface or of the browser. Any free short name will do; these make
// the compressed files 30 bytes smaller than those that esbuild chooses, found by swapping at random.
const internalNames = {
  shelf: "S", http: "z", session: "j", socket: "Z", syncClock: "C", onUser: "x", reportError: "p",
  fail: "V", prefix: "b", options: "u", emit: "m", bearer: "r", freshToken: "E", refuse: "h",
  currentToken: "A", forget: "N", isUp: "K", ask: "k", buffered: "O", wake: "c", drop: "D", rest: "$",
  onUp: "g", onDown: "U", onEvent: "I", onFailure: "q", sent: "a", timer: "e", frame: "T", reject: "t",
  resolve: "s", retries: "_", emitter: "G", waits: "H", sharedVersion: "i", forgotten: "v", base: "L",
  heard: "f", live: "d", busy: "P", whenDone: "l", isPersistent: "W", note: "y", flush: "n", catchUp: "w",
  end: "o",
};

// What the hooks take from packages of which a page has one copy.
const peers = { "@parlor-games/sdk": "src/index.ts", "@parlor-games/sdk/boards": "src/boards.ts" };

/** Bundles an entry point. `names` are shortened, null: none. */
async function bundle(entry, format, names = internalNames) {
  const result = await build({
    absWorkingDir: root, entryPoints: [entry], bundle: true, write: false, format, target: "es2020",
    platform: "neutral", charset: "utf8", legalComments: "none", logLevel: "error",
    external: ["react", "ws", "node:*", ...Object.keys(peers)],
    ...names && { mangleProps: new RegExp(`^(${Object.keys(names).join("|")})$`), mangleCache: { ...names } },
    tsconfigRaw: { compilerOptions: { target: "es2020", verbatimModuleSyntax: true } }, // and no "use strict"
  });
  // One keyword for all variables compresses better; the compiler has checked what is constant. Of a
  // script that has the text of another program in it, names and keywords stay as they are.
  const text = names ? result.outputFiles[0].text.replace(/\bconst /g, "let ") : result.outputFiles[0].text;
  const { code } = await minify(text, {
    ecma: 2020, module: format === "esm", toplevel: format !== "iife",
    compress: {
      passes: 5, ecma: 2020, unsafe_arrows: true, inline: 1, hoist_funs: true, unsafe: true, pure_getters: true,
      sequences: false, // statements compress better
      lhs_constants: false,
    },
    mangle: { toplevel: format !== "cjs" }, format: { ecma: 2020 },
  });
  return `/*! Parlor ${version} Apache-2.0 */\n${code}\n`;
}

/** Returns the text of every file of dist but the packages and their digests, by name. */
export async function buildAll() {
  const types = bundleTypes(root);
  const script = await bundle("src/global.ts", "iife");
  const module = await bundle("src/module.ts", "esm");
  const devtools = await bundle("src/devtools/devtools.ts", "iife", null);
  return {
    "v1.js": script,
    [`${version}.js`]: script,
    "v1.mjs": module,
    [`${version}.mjs`]: module,
    "v1.cjs": await bundle("src/index.ts", "cjs"),
    "binary.v1.mjs": await bundle("src/binary.ts", "esm"),
    "binary.v1.d.mts": bundleTypes(root, "src/binary.ts", { "./v1.mjs": "src/index.ts" }),
    "boards.v1.js": await bundle("src/boards_global.ts", "iife"),
    "boards.v1.mjs": await bundle("src/boards.ts", "esm"),
    "boards.v1.cjs": await bundle("src/boards.ts", "cjs"),
    "boards.v1.d.mts": bundleTypes(root, "src/boards.ts", { "./v1.mjs": "src/index.ts" }),
    "boards.v1.d.cts": bundleTypes(root, "src/boards.ts", { "./v1.cjs": "src/index.ts" }),
    "server.v1.mjs": await bundle("src/server/index.ts", "esm", null),
    "server.v1.cjs": await bundle("src/server/index.ts", "cjs", null),
    "server.v1.d.mts": bundleTypes(root, "src/server/index.ts", { "./v1.mjs": "src/index.ts" }),
    "server.v1.d.cts": bundleTypes(root, "src/server/index.ts", { "./v1.cjs": "src/index.ts" }),
    "tournaments.v1.js": await bundle("src/tournaments_global.ts", "iife"),
    "tournaments.v1.mjs": await bundle("src/tournaments.ts", "esm"),
    "tournaments.v1.d.mts": bundleTypes(root, "src/tournaments.ts", { "./v1.mjs": "src/index.ts" }),
    "react.v1.js": await bundle("react/src/global.ts", "iife", null),
    "react.v1.mjs": await bundle("react/src/hooks.ts", "esm", null),
    "react.v1.d.mts": bundleTypes(root, "react/src/hooks.ts", {
      "./v1.mjs": "src/index.ts", "./boards.v1.mjs": "src/boards.ts",
    }),
    "devtools.v1.js": devtools,
    "debug.v1.js": devtools, // the name that the core loads, also the core of an older page
    "bridge.v1.js": await bundle("engines/bridge.js", "iife", null),
    "v1.d.ts": `${types}\nexport as namespace Parlor;\n`,
    "v1.d.mts": types,
    "v1.d.cts": types,
  };
}

/** Returns the text of every file of react/dist, by name. */
export async function buildReact() {
  const types = bundleTypes(root, "react/src/index.ts", peers);
  return {
    "index.mjs": await bundle("react/src/index.ts", "esm", null),
    "index.cjs": await bundle("react/src/index.ts", "cjs", null),
    "index.d.mts": types,
    "index.d.cts": types,
  };
}

function writeFolder(folder, files) {
  const path = join(root, folder);
  mkdirSync(path, { recursive: true });
  for (const name of readdirSync(path)) rmSync(join(path, name));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const files = await buildAll();
  writeFolder("dist", files);
  writeFolder("react/dist", await buildReact());
  writePackages();
  for (const name of ["v1.js", "v1.mjs"]) {
    console.log(`${name}: ${files[name].length} bytes, ${gzipSync(files[name], { level: 9 }).length} gzipped`);
  }
}
