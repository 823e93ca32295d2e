// Lists the pages of /docs and renders them.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ComponentChildren } from "preact";
import { readContract } from "./contract";
import { ClientCodePage, ClosePage, ClosesPage, ErrorPage, ErrorsPage } from "./errors";
import { EventsPage } from "./events";
import { Overview, SchemasPage, TagPage, TryOffPage, TryPage, tagTitles } from "./http";
import { HTML, renderPage, type NavGroup } from "./layout";
import { renderMarkdown } from "./markdown";

/** Pages that are written for /docs alone: src/docs/content/<name>.md. */
const content = [
  { name: "first-game", title: "Your first game" },
  { name: "first-leaderboard", title: "Your first leaderboard" },
  { name: "first-tournament", title: "Your first tournament" },
  { name: "clients", title: "Clients in other languages" },
  { name: "recipes/turn-based", title: "Shared state and turns" },
  { name: "recipes/arena", title: "A 20 Hz arena" },
  { name: "recipes/duel", title: "A paid duel" },
  { name: "recipes/consensus", title: "A match without a game server" },
];

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

/** Returns the pages of /docs by file name. root is the repository. */
export async function renderPages(root: string): Promise<Map<string, string>> {
  const contract = readContract(root);
  const read = (path: string) => readFileSync(join(root, path), "utf8");
  const nav: NavGroup[] = [
    {
      title: "Make a game",
      pages: [{ href: "/docs", title: "Where to start" }, ...content.map(({ name, title }) => ({ href: `/docs/${name}`, title }))],
    },
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
    ...[["operator", "Operate"], ["contributor", "How it works"]].map(([audience, title]) => ({
      title: title!,
      pages: guides.filter((one) => one.audience === audience).map((one) => ({ href: `/docs/guide/${one.name}`, title: one.title })),
    })),
  ];
  const pages = new Map<string, string>();
  const add = (
    path: string, title: string, children: ComponentChildren,
    more: { contents?: { id: string; text: string }[]; script?: string; file?: string } = {},
  ) => {
    const file = more.file ?? (path === "/docs" ? "index.html" : `${path.slice("/docs/".length)}.html`);
    pages.set(file, renderPage({ path, title, nav, contents: more.contents, script: more.script, children }));
  };
  const addMarkdown = (path: string, text: string, link?: (href: string) => string | null) => {
    const { html, title, headings } = renderMarkdown(text, link);
    add(path, title, <HTML class="prose" html={html} />, { contents: headings });
  };

  addMarkdown("/docs", read("web/src/docs/content/index.md"));
  for (const { name } of content) addMarkdown(`/docs/${name}`, read(`web/src/docs/content/${name}.md`));
  for (const { name } of guides) addMarkdown(`/docs/guide/${name}`, read(`docs/${name}.md`), linkOfDocument);

  add("/docs/http", "HTTP reference", <Overview contract={contract} />);
  for (const { name } of contract.tags) {
    const contents = contract.operations.filter((one) => one.tag === name).map((one) => ({ id: one.id, text: one.summary }));
    add(`/docs/http/${name}`, tagTitles[name] ?? name, <TagPage contract={contract} tag={name} />, { contents });
  }
  add("/docs/http/schemas", "Schemas", <SchemasPage contract={contract} />);
  add("/docs/events", "Events and sockets", <EventsPage contract={contract} />, {
    contents: [
      { id: "realtime", text: "Requests about rooms" }, { id: "events", text: "Events" },
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
  return pages;
}
