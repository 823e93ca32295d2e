// The frame of every page: header, list of pages, main part.
import type { ComponentChildren } from "preact";
import { renderToString } from "preact-render-to-string";

export interface NavGroup {
  title: string;
  pages: { href: string; title: string }[];
}

/** HTML is text that was rendered by Markdown already. */
export const HTML = ({ html, as: Tag = "div", class: name }: { html: string; as?: "div" | "span" | "p" | "td"; class?: string }) => (
  <Tag class={name} dangerouslySetInnerHTML={{ __html: html }} />
);

interface PageProps {
  path: string;
  title: string;
  nav: NavGroup[];
  contents?: { id: string; text: string }[];
  script?: string; // an asset beside the common one
  children: ComponentChildren;
}

const Mark = () => (
  <svg class="mark" viewBox="0 0 24 24" aria-hidden="true">
    <rect x="2" y="2" width="20" height="20" rx="6" />
    <circle cx="8.5" cy="8.5" r="1.9" />
    <circle cx="15.5" cy="15.5" r="1.9" />
    <circle cx="15.5" cy="8.5" r="1.9" />
    <circle cx="8.5" cy="15.5" r="1.9" />
  </svg>
);

function Page({ path, title, nav, contents = [], script, children }: PageProps) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>{path === "/docs" ? "Parlor documentation" : `${title} · Parlor`}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="{{asset theme.css}}" />
        <link rel="stylesheet" href="{{asset docs-style.css}}" />
        <script src="{{asset early.js}}" />
        <script type="module" src="{{asset docs.js}}" />
        {script && <script type="module" src={`{{asset ${script}}}`} />}
      </head>
      <body>
        <a class="skip" href="#main">Skip to the text</a>
        <header class="top">
          <a class="brand" href="/docs"><Mark />Parlor <span>docs</span></a>
          <form id="search" class="search" role="search" hidden>
            <input
              type="text" placeholder="Search (/)" aria-label="Search the documentation" autocomplete="off" spellcheck={false}
              enterKeyHint="go" role="combobox" aria-expanded="false" aria-controls="hits" aria-autocomplete="list" aria-keyshortcuts="/"
            />
            <ul id="hits" role="listbox" aria-label="Hits" hidden />
            <output class="visually-hidden" role="status" />
          </form>
          <nav aria-label="Sections">
            <a href="/docs/start">Install</a>
            <a href="/docs/sdk/client">SDK</a>
            <a href="/docs/http">HTTP</a>
            <a href="/docs/errors">Errors</a>
          </nav>
          <button type="button" data-act="theme" class="theme" hidden>
            <span aria-hidden="true">◐</span>
          </button>
        </header>
        <div class="columns">
          <details class="menu">
            <summary>All pages</summary>
            <nav aria-label="All pages"><Groups nav={nav} path={path} /></nav>
          </details>
          <nav class="side" aria-label="Documentation"><Groups nav={nav} path={path} /></nav>
          <main id="main" tabIndex={-1}>{children}</main>
          {contents.length > 2 && (
            <nav class="contents" aria-label="On this page">
              <p>On this page</p>
              <ul>{contents.map(({ id, text }) => <li><a href={`#${id}`}>{text}</a></li>)}</ul>
            </nav>
          )}
        </div>
      </body>
    </html>
  );
}

const Groups = ({ nav, path }: { nav: NavGroup[]; path: string }) => (
  <>
    {nav.map((group) => (
      <section>
        <p class="group">{group.title}</p>
        <ul>
          {group.pages.map(({ href, title }) => (
            <li><a href={href} aria-current={href === path ? "page" : undefined}>{title}</a></li>
          ))}
        </ul>
      </section>
    ))}
  </>
);

/** Returns a whole page as HTML. */
export const renderPage = (props: PageProps) => `<!doctype html>\n${renderToString(<Page {...props} />)}\n`;

/** Returns a page that has nothing but a script, for a frame. */
export const renderFrame = (title: string, script: string) => `<!doctype html>\n${renderToString(
  <html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <title>{title}</title>
      <link rel="icon" href="data:," />
      <link rel="stylesheet" href="{{asset theme.css}}" />
      <link rel="stylesheet" href="{{asset docs-style.css}}" />
      <script src="{{asset early.js}}" />
      <script type="module" src={`{{asset ${script}}}`} />
    </head>
    <body class="frame" />
  </html>,
)}\n`;
