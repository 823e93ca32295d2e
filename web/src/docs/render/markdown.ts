// Markdown as HTML: headings with ids, code with classes for colours, links that lead to pages.
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import json from "highlight.js/lib/languages/json";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { Marked } from "marked";

const languages = { bash, go, ini, json, typescript, xml, yaml };
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language);

const escapes: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
export const escapeHTML = (text: string) => text.replace(/[&<>"]/g, (character) => escapes[character]!);

/** Returns the id of a heading, as GitHub makes it. */
export const slug = (text: string) =>
  text.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").trim().replace(/ /g, "-");

/** Returns code as a block that can be scrolled by keyboard. */
export function highlight(code: string, language = ""): string {
  const known = hljs.getLanguage(language);
  // An option of a command, such as --yes, is no word of the shell.
  const html = known ? hljs.highlight(code, { language }).value.replace(/--<span[^>]*>([\w-]+)<\/span>/g, "--$1") : escapeHTML(code);
  return `<pre tabindex="0"${/^(ba)?sh$/.test(language) ? ' class="commands"' : ""}><code>${html}</code></pre>`;
}

export interface Heading {
  id: string;
  text: string;
}

export interface Rendered {
  html: string;
  title: string;
  headings: Heading[]; // of the second level
}

/** Renders a page. link returns the address of a link, or null where it leads to no page. */
export function renderMarkdown(text: string, link: (href: string) => string | null = (href) => href): Rendered {
  const headings: Heading[] = [];
  const taken = new Set<string>();
  let title = "";
  const renderer = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth, text: plain }) {
        const words = plain.replace(/[`*]/g, "");
        let id = slug(words);
        for (let n = 1; taken.has(id); n++) id = `${slug(words)}-${n}`;
        taken.add(id);
        if (depth === 1) {
          title = words;
          return `<h1>${this.parser.parseInline(tokens)}</h1>\n`;
        }
        if (depth === 2) headings.push({ id, text: words });
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      code({ text: code, lang }) {
        return `${highlight(code, lang?.split(" ")[0])}\n`;
      },
      table(token) {
        const row = (cells: typeof token.header, tag: string) =>
          `<tr>${cells.map((cell) => {
            const name = cell.text ? tag : "td"; // a header without text says nothing
            return `<${name}>${this.parser.parseInline(cell.tokens)}</${name}>`;
          }).join("")}</tr>\n`;
        const body = token.rows.map((cells) => row(cells, "td")).join("");
        return `<div class="table" tabindex="0" role="group" aria-label="Table"><table>\n<thead>${row(token.header, "th")}</thead>\n<tbody>${body}</tbody></table></div>\n`;
      },
      link({ href, tokens }) {
        const address = link(href);
        const inner = this.parser.parseInline(tokens);
        if (/^https?:/.test(href) && !URL.canParse(href)) return `<code>${inner}</code>`; // such as https://host:port
        return address === null ? inner : `<a href="${escapeHTML(address)}">${inner}</a>`;
      },
      html: () => "", // comments only; pages of the project have no HTML of their own
    },
  });
  const html = renderer.parse(text, { async: false });
  return { html, title, headings };
}

/** Renders a text of the contract: paragraphs without headings. */
export const renderText = (text: string) => renderMarkdown(text).html;

const inline = new Marked({ gfm: true });

/** Renders a sentence of the contract. */
export const renderInline = (text: string) => inline.parseInline(text, { async: false });
