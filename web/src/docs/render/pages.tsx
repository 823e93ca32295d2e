// Lists the pages of /docs and renders them.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { ComponentChildren } from "preact";
import { readContract } from "./contract";
import { ClientCodePage, ClosePage, ClosesPage, ErrorPage, ErrorsPage } from "./errors";
import { EventsPage } from "./events";
import { ExamplePage, ExamplesPage, examples, renderExampleFrame } from "./examples";
import { Overview, SchemasPage, TagPage, TryOffPage, TryPage, tagTitles } from "./http";
import { HTML, renderPage, type NavGroup } from "./layout";
import { renderMarkdown } from "./markdown";
import { contributorGroup, textOf, writeIndex, type SearchPage } from "./search_index";
import { AreaPage, headingsOf, readAreaText } from "./sdk";
import { readSDK } from "./sdk_types";

/**
 * Pages that are written for /docs alone: src/docs/content/<folder>/<name>.md. The title of a page is its
 * heading. Those that are named here come first, in this order; others follow by their names.
 */
const groups = [
  { title: "Start", folder: "start", order: ["index", "script-tag", "vite", "react", "phaser", "canvas", "node"] },
  { title: "Make a game", folder: "", order: ["first-game", "first-leaderboard", "first-tournament", "origins"] },
  { title: "Recipes", folder: "recipes", order: ["turn-based", "arena", "duel", "consensus", "game-server"] },
  { title: "Engines", folder: "engines", order: [] as string[] },
];

interface ContentPage {
  path: string; // of the page
  file: string;
  title: string;
}

/** Returns the pages of a folder of content. */
function listContent(root: string, folder: string, order: string[]): ContentPage[] {
  const base = join(root, "web/src/docs/content", folder);
  if (!existsSync(base)) return [];
  const names = readdirSync(base).filter((name) => name.endsWith(".md")).map((name) => name.slice(0, -3))
    .filter((name) => folder !== "" || name !== "index").sort();
  const missing = order.filter((name) => !names.includes(name));
  if (missing.length > 0) throw new Error(`${base} lacks ${missing}`);
  return [...order, ...names.filter((name) => !order.includes(name))].map((name) => {
    const file = join(base, `${name}.md`);
    const title = readFileSync(file, "utf8").match(/^# (.+)$/m)?.[1]?.replace(/[`*]/g, "");
    if (!title) throw new Error(`${file} has no heading`);
    return { file, title, path: ["/docs", folder, name].filter((part) => part !== "" && part !== "index").join("/") };
  });
}

/** Documents of the repository: docs/<name>.md. */
const guides = [
  { name: "deployment", title: "Running Parlor", audience: "operator" },
  { name: "settings", title: "Settings", audience: "operator" },
  { name: "limits", title: "Limits", audience: "operator" },
  { name: "security", title: "Security", audience: "operator" },
  { name: "money", title: "What is promised about money", audience: "operator" },
  { name: "proof", title: "What is proven about money", audience: "operator" },
  { name: "consensus", title: "Who says who has won", audience: "operator" },
  { name: "presence", title: "Presence", audience: "operator" },
  { name: "game-server", title: "The game's server", audience: "operator" },
  { name: "webhooks", title: "Webhooks", audience: "operator" },
  { name: "cost", title: "What a call costs", audience: "operator" },
  { name: "performance", title: "What sockets cost", audience: "operator" },
  { name: "changes", title: "What a change of settings reaches", audience: "operator" },
  { name: "architecture", title: "Architecture", audience: "contributor" },
  { name: "howto", title: "How to change things", audience: "contributor" },
  { name: "glossary", title: "Glossary", audience: "contributor" },
  { name: "events", title: "Events in short", audience: "contributor" },
  { name: "traps", title: "Traps of sockets and pub/sub", audience: "contributor" },
  { name: "dangerous-places", title: "The dangerous places", audience: "contributor" },
];

/** Returns the address of a link in a document of the repository, or null if it leads to no page. */
function linkOfDocument(href: string): string | null {
  if (/^(https?:|#|\/)/.test(href)) return href;
  const [path, anchor] = href.replace(/^(\.\/|docs\/)/, "").split("#") as [string, string?];
  const name = path.replace(/\.md$/, "");
  const page = name === "errors" ? "/docs/errors"
    : guides.some((one) => one.name === name) ? `/docs/guide/${name}` : null;
  return page && (anchor ? `${page}#${anchor}` : page);
}

/** Returns the pages of /docs by file name, and the index of the search. root is the repository. */
export async function renderPages(root: string): Promise<{ pages: Map<string, string>; index: string }> {
  const contract = readContract(root);
  const read = (path: string) => readFileSync(join(root, path), "utf8");
  const content = groups.map(({ title, folder, order }) => ({ title, pages: listContent(root, folder, order) }));
  const areas = readSDK(root);
  const nav: NavGroup[] = [
    { title: "Documentation", pages: [{ href: "/docs", title: "Where to start" }] },
    ...content.filter(({ pages }) => pages.length > 0)
      .map(({ title, pages }) => ({ title, pages: pages.map((one) => ({ href: one.path, title: one.title })) })),
    {
      title: "Examples",
      pages: [
        { href: "/docs/examples", title: "All examples" },
        ...examples.map(({ name, title }) => ({ href: `/docs/examples/${name}`, title })),
      ],
    },
    { title: "SDK", pages: areas.map(({ name, title }) => ({ href: `/docs/sdk/${name}`, title })) },
    {
      title: "Reference",
      pages: [
        { href: "/docs/http", title: "HTTP, overview" },
        ...contract.tags.map(({ name }) => ({ href: `/docs/http/${name}`, title: tagTitles[name] ?? name })),
        { href: "/docs/http/schemas", title: "Schemas" },
        { href: "/docs/events", title: "Events and sockets" },
        { href: "/docs/errors", title: "Errors" },
        { href: "/docs/close", title: "Close codes" },
        { href: "/docs/try", title: "Try it" },
      ],
    },
    ...[["operator", "Operate"], ["contributor", contributorGroup]].map(([audience, title]) => ({
      title: title!,
      pages: guides.filter((one) => one.audience === audience).map((one) => ({ href: `/docs/guide/${one.name}`, title: one.title })),
    })),
  ];
  const pages = new Map<string, string>();
  const found: SearchPage[] = []; // what the search finds
  const groupOf = (path: string) => nav.find((group) => group.pages.some(({ href }) => href === path))?.title
    ?? (path.startsWith("/docs/close/") ? "Close codes" : "Errors");
  const add = (
    path: string, title: string, children: ComponentChildren,
    more: { contents?: { id: string; text: string }[]; script?: string; file?: string } = {},
  ) => {
    const file = more.file ?? (path === "/docs" ? "index.html" : `${path.slice("/docs/".length)}.html`);
    const html = renderPage({ path, title, nav, contents: more.contents, script: more.script, children });
    pages.set(file, html);
    if (!more.file && file !== "404.html") found.push({ path, title, group: groupOf(path), html });
  };
  const addMarkdown = (path: string, text: string, link?: (href: string) => string | null) => {
    const { html, title, headings } = renderMarkdown(text, link);
    add(path, title, <HTML class="prose" html={html} />, { contents: headings });
  };

  addMarkdown("/docs", read("web/src/docs/content/index.md"));
  for (const { path, file } of content.flatMap((group) => group.pages)) addMarkdown(path, readFileSync(file, "utf8"));
  for (const area of areas) {
    const text = readAreaText(area, read(`web/src/docs/content/sdk/${area.name}.md`));
    add(`/docs/sdk/${area.name}`, area.title, <AreaPage area={area} text={text} areas={areas} contract={contract} />, {
      contents: headingsOf(area, text),
    });
  }
  for (const { name } of guides) addMarkdown(`/docs/guide/${name}`, read(`docs/${name}.md`), linkOfDocument);

  add("/docs/examples", "Examples", <ExamplesPage />);
  for (const example of examples) {
    const path = `/docs/examples/${example.name}`;
    const page = (isPlayable: boolean) => <ExamplePage root={root} example={example} isPlayable={isPlayable} />;
    add(path, example.title, page(false));
    add(path, example.title, page(true), { file: `examples/${example.name}.dev.html`, script: "examples.js" });
    pages.set(`examples/${example.name}/frame.dev.html`, renderExampleFrame(example));
  }

  add("/docs/http", "HTTP reference", <Overview contract={contract} />);
  for (const { name } of contract.tags) {
    const contents = contract.operations.filter((one) => one.tag === name).map((one) => ({ id: one.id, text: one.summary }));
    add(`/docs/http/${name}`, tagTitles[name] ?? name, <TagPage contract={contract} tag={name} />, { contents });
  }
  add("/docs/http/schemas", "Schemas", <SchemasPage contract={contract} />);
  add("/docs/events", "Events and sockets", <EventsPage contract={contract} />, {
    contents: [
      { id: "realtime", text: "Requests about rooms" }, { id: "events", text: "Events" },
      { id: "server", text: "The game's server" }, { id: "webhooks", text: "Webhooks" },
      { id: "saves", text: "Requests about saves" }, { id: "shapes", text: "Shapes" },
    ],
  });

  const errorsText = read("docs/errors.md");
  const intro = renderMarkdown(errorsText.slice(errorsText.indexOf("# Errors") + "# Errors".length, errorsText.indexOf("| code |")));
  add("/docs/errors", "Errors", <ErrorsPage contract={contract} intro={intro.html} />);
  for (const error of contract.errors) add(`/docs/errors/${error.code}`, error.code, <ErrorPage error={error} />);
  for (const error of contract.clientCodes) add(`/docs/errors/${error.code}`, error.code, <ClientCodePage error={error} />);
  add("/docs/close", "Close codes", <ClosesPage contract={contract} />);
  for (const close of contract.closeCodes) add(`/docs/close/${close.code}`, `${close.code} ${close.title}`, <ClosePage close={close} />);

  add("/docs/try", "Try it", <TryOffPage />);
  add("/docs/try", "Try it", <TryPage contract={contract} />, { file: "try.dev.html", script: "try.js" });
  add("/docs/404", "Nothing here", (
    <>
      <h1>There is no page at this address</h1>
      <p class="lead">Choose one from the list, or begin <a href="/docs">at the start</a>.</p>
    </>
  ));
  pages.set("llms.txt", writeLLMs(nav, found));
  return { pages, index: writeIndex(found) };
}

/** Returns the list of pages for language models, in the format of llmstxt.org. The addresses are of this node. */
function writeLLMs(nav: NavGroup[], found: SearchPage[]): string {
  const noteOf = (path: string) => {
    const html = found.find((one) => one.path === path)?.html.match(/<main[^>]*>[\s\S]*?<\/h1>[\s\S]*?<p[^>]*>([\s\S]*?)<\/p>/)?.[1] ?? "";
    const text = textOf(html);
    return text.match(/^.*?[.:](?= |$)/)?.[0].replace(/:$/, ".") ?? text;
  };
  return [
    "# Parlor", "",
    "> The backend of a web game: rooms with stakes, wallets, purchases, saves and real-time events, for pages, game servers",
    "> and operators. A node serves this documentation, and the SDK at /sdk/v1.js, of the version that it runs.", "",
    "The contracts are /openapi.yaml (HTTP) and /asyncapi.yaml (WebSockets). Every error code has a page,",
    "/docs/errors/<code>. Amounts are decimal numbers; programs use the strings in minor units beside them, whose names end",
    "in Amount.", "",
    ...nav.flatMap(({ title, pages }) => [
      `## ${title}`, "",
      ...pages.map((one) => `- [${one.title}](${one.href})${noteOf(one.href) && `: ${noteOf(one.href)}`}`), "",
    ]),
  ].join("\n");
}
