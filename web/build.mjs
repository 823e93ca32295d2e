// Writes dist/: every section bundled, named by its content and compressed. With --check it builds in
// memory and fails when dist/ differs; compressed files are compared by what they contain, because
// compressors differ between versions of Node. Names after the options choose sections.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, brotliDecompressSync, constants, gunzipSync, gzipSync } from "node:zlib";
import * as esbuild from "esbuild";

const web = dirname(fileURLToPath(import.meta.url));

/**
 * The sections of a node. `entries` are bundled to assets/ under names with a hash. `pages` returns
 * the HTML files by name, and the text of the module search-index; without it they are the HTML files of
 * the section's folder. In both,
 * {{asset main.js}} is the address of an entry. Every section has {{asset theme.css}}, the shared style,
 * and {{asset early.js}}, which a page loads in its head before anything is shown.
 */
const sections = [
  {
    name: "docs",
    entries: {
      docs: "src/docs/docs.ts", try: "src/docs/try.ts", examples: "src/docs/examples.ts", "docs-style": "src/docs/docs.css",
      ...Object.fromEntries(["canvas", "arena", "turn_based", "duel", "phaser"]
        .map((name) => [`example-${name}`, `../sdk/examples/${name}.ts`])),
    },
    alias: { "@parlor-games/sdk": "./src/docs/player.ts" }, // of the examples
    target: "es2022", // they wait for the client at their top; browsers that load modules know it
    legalComments: "eof", // Phaser's licence
    pages: renderDocs,
  },
  { name: "console", entries: { console: "src/console/console.tsx", style: "src/console/style.css" } },
  { name: "play", entries: { main: "src/play/main.tsx", bot: "src/play/bot.ts", play: "src/play/play.css" } },
];

/** Makes `import text from "source:./game.ts"` the text of that file, for a page that shows its own code. */
const sourceTexts = {
  name: "source texts",
  setup(build) {
    // A path of this machine would be part of the hash in the name of the built file.
    build.onResolve({ filter: /^source:/ }, ({ path, resolveDir }) => ({
      path: relative(web, join(resolveDir, path.slice(7))), namespace: "source",
    }));
    build.onLoad({ filter: /./, namespace: "source" }, ({ path }) => ({
      contents: readFileSync(join(web, path)), loader: "text",
    }));
  },
};

/** Gives the modules that a section makes while it is built, by name. */
const madeModules = (modules) => ({
  name: "made modules",
  setup(build) {
    build.onResolve({ filter: /^search-index$/ }, ({ path }) => ({ path, namespace: "made" }));
    build.onLoad({ filter: /./, namespace: "made" }, ({ path }) => ({
      contents: `export default ${JSON.stringify(modules[path])}`, loader: "js",
    }));
  },
});

const compressible = /\.(html|css|js|mjs|svg|json|txt|map)$/;

/** Returns the files of a section: a Map from the name below dist/<section> to the content. */
async function buildSection(section) {
  const folder = join(web, "src", section.name);
  const { pages, index } = section.pages ? await section.pages() : { pages: readPages(folder) };
  const result = await esbuild.build({
    absWorkingDir: web,
    entryPoints: { theme: "src/shared/theme.css", early: "src/shared/early.ts", ...section.entries },
    outdir: join(web, "dist", section.name, "assets"),
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    publicPath: `/${section.name}/assets`,
    bundle: true,
    minify: true,
    splitting: true,
    format: "esm",
    target: section.target ?? "es2020",
    alias: section.alias,
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: section.legalComments ?? "none",
    charset: "utf8",
    loader: { ".svg": "file", ".png": "file" },
    external: ["/sdk/*"],
    plugins: [sourceTexts, madeModules({ "search-index": index })],
    metafile: true,
    write: false,
    logLevel: "warning",
  });
  const files = new Map();
  const assets = {};
  for (const output of result.outputFiles) {
    const name = relative(join(web, "dist", section.name), output.path);
    files.set(name, Buffer.from(output.contents));
    const entry = result.metafile.outputs[relative(web, output.path)]?.entryPoint;
    if (entry) assets[name.replace(/^assets\//, "").replace(/-[0-9A-Z]{8}(?=\.\w+$)/, "")] = `/${section.name}/${name}`;
  }
  for (const [name, html] of pages) {
    files.set(name, Buffer.from(html.replace(/\{\{asset ([\w.-]+)\}\}/g, (_, asset) => {
      if (!assets[asset]) throw new Error(`${section.name}/${name}: there is no asset ${asset}`);
      return assets[asset];
    })));
  }
  return files;
}

function readPages(folder) {
  return new Map(readdirSync(folder).filter((name) => name.endsWith(".html"))
    .map((name) => [name, readFileSync(join(folder, name), "utf8")]));
}

/** Returns the pages of /docs. The renderer is TypeScript, so it is bundled to be run. */
async function renderDocs() {
  const bundled = await esbuild.build({
    absWorkingDir: web,
    entryPoints: ["src/docs/render/pages.tsx"],
    bundle: true,
    platform: "node",
    format: "esm",
    packages: "external",
    jsx: "automatic",
    jsxImportSource: "preact",
    write: false,
    logLevel: "warning",
  });
  // Below node_modules, so that its imports are found.
  const file = join(web, "node_modules", ".cache", `render-${process.pid}.mjs`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, bundled.outputFiles[0].contents);
  try {
    const { renderPages } = await import(file);
    return await renderPages(join(web, ".."));
  } finally {
    rmSync(file);
  }
}

function compressed(name, content) {
  if (!compressible.test(name)) return [[name, content]];
  return [
    [`${name}.gz`, gzipSync(content, { level: 9 })],
    [`${name}.br`, brotliCompressSync(content, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: 11,
        [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
        [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
      },
    })],
  ];
}

function listFiles(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true }).filter((name) => statSync(join(folder, name)).isFile());
}

function write(section, files) {
  const folder = join(web, "dist", section.name);
  rmSync(folder, { recursive: true, force: true });
  for (const [name, content] of files) {
    for (const [stored, bytes] of compressed(name, content)) {
      mkdirSync(dirname(join(folder, stored)), { recursive: true });
      writeFileSync(join(folder, stored), bytes);
    }
  }
}

/** Returns the names of files in dist/ that differ from what was built. */
function differences(section, files) {
  const folder = join(web, "dist", section.name);
  const expected = new Map();
  for (const [name, content] of files) {
    if (!compressible.test(name)) expected.set(name, content);
    else expected.set(`${name}.gz`, content).set(`${name}.br`, content);
  }
  const stale = [];
  for (const name of new Set([...listFiles(folder), ...expected.keys()])) {
    const want = expected.get(name);
    const path = join(folder, name);
    if (!want || !existsSync(path)) {
      stale.push(name);
      continue;
    }
    const have = readFileSync(path);
    const content = want && compressible.test(name.replace(/\.(gz|br)$/, "")) && name.endsWith(".gz") ? gunzipSync(have)
      : name.endsWith(".br") ? brotliDecompressSync(have) : have;
    if (!content.equals(want)) stale.push(name);
  }
  return stale;
}

const checks = process.argv.includes("--check");
const chosen = process.argv.slice(2).filter((argument) => !argument.startsWith("--"));
for (const section of sections.filter(({ name }) => chosen.length === 0 || chosen.includes(name))) {
  const files = await buildSection(section);
  const digest = createHash("sha256");
  for (const name of [...files.keys()].sort()) digest.update(name).update(files.get(name));
  if (checks) {
    const stale = differences(section, files);
    if (stale.length > 0) {
      console.error(`web/dist/${section.name} is stale; run \`make web\`: ${stale.slice(0, 5).join(", ")} (${stale.length})`);
      process.exitCode = 1;
    }
  } else {
    write(section, files);
    console.log(`${section.name}: ${files.size} files, ${digest.digest("hex").slice(0, 12)}`);
  }
}
