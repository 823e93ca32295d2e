// Writes the index of the search from the pages: their headings, and which words stand below each.
import { termsOf } from "../search_words";

export interface SearchPage {
  path: string;
  title: string;
  group: string;
  html: string;
}

/** What a hit on a page counts: what a newcomer needs before what a contributor does. */
function weightOf(path: string, isForContributors: boolean): number {
  if (path === "/docs/http/schemas" || path === "/docs/try") return 0.35;
  if (path === "/docs/http/admin") return 0.6;
  if (path.startsWith("/docs/http")) return 0.75;
  if (path === "/docs/errors") return 0.4;
  if (path === "/docs" || path === "/docs/close" || path === "/docs/events") return 0.6;
  if (path.startsWith("/docs/errors/") || path.startsWith("/docs/close/")) return 0.7;
  if (path === "/docs/sdk/binary") return 0.9; // which few games need
  if (path === "/docs/sdk/server") return 0.7; // not of a page
  if (path.startsWith("/docs/examples")) return 0.7;
  if (path.startsWith("/docs/guide")) return isForContributors ? 0.6 : 1;
  return path.startsWith("/docs/sdk") ? 1.15 : 1.3;
}

/** The title of the group of pages for contributors. */
export const contributorGroup = "How it works";

const entities: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": "\"", "&#39;": "'" };
/** Returns the text of HTML. */
export const textOf = (html: string) => html.replace(/<[^>]+>/g, " ").replace(/&[#\w]+;/g, (one) => entities[one] ?? " ").replace(/\s+/g, " ").trim();

// Commonest terms say little, and have the longest lists.
const mostSections = 220;

/** Returns the index, as a text that search.ts reads. */
export function writeIndex(pages: SearchPage[]): string {
  const sections = new Map<string, number[]>(); // the numbers of the sections by term
  let n = 0;
  const rows = pages.map(({ path, title, group, html }) => {
    const main = html.match(/<main[^>]*>([\s\S]*?)<\/main>/)![1]!
      .replace(/<ul class="operations">[\s\S]*?<\/ul>/g, "").replace(/<details>[\s\S]*?<\/details>/g, "");
    const [kicker] = main.split("<h1", 1);
    const parts = main.split(/(?=<h[123](?: id="[^"]*")?(?: class="[^"]*")?>)/).flatMap((part) => {
      const heading = part.match(/^<h([123])(?: id="([^"]*)")?[^>]*>([\s\S]*?)<\/h\1>/);
      return heading && (/^<h1|<h\d id/.test(heading[0])) ? [{ place: heading[2] ?? "", heading: textOf(heading[3]!), part }] : [];
    });
    const lines = parts.map(({ place, heading, part }) => {
      const keys = [...part.matchAll(/<tr><td>\s*<code>(.*?)<\/code>/g)].map(([, key]) => textOf(key!))
        .filter((key) => /^[\w-]*[_-][\w-]*$/.test(key)).join(" ");
      const known = new Set([...termsOf(`${title} ${heading} ${place}`), ...keys.toLowerCase().split(" ")]);
      if (path !== "/docs/http/schemas") {
        for (const term of new Set(termsOf(textOf(place === "" ? kicker + part : part)))) {
          if (!known.has(term) && term.length > 1 && !/^\d{5,}|^\d\d?$|[0-9a-f]{8}/.test(term)) {
            sections.set(term, [...(sections.get(term) ?? []), n]);
          }
        }
      }
      n++;
      return `${place}\t${place === "" ? "" : heading}${keys && `\t${keys}`}`;
    });
    return [path, title, group, weightOf(path, group === contributorGroup), lines];
  });
  let previous = "";
  const allTerms = [...sections].sort(([a], [b]) => (a < b ? -1 : 1)).map(([term, all]) => {
    let shared = 0;
    while (shared < term.length && term[shared] === previous[shared]) shared++;
    previous = term;
    if (all.length > mostSections) return `${shared.toString(36)}\t${term.slice(shared)}\t\t${all.length}`;
    let at = -1;
    const places = all.map((place) => {
      const step = place - at - 1;
      at = place;
      const high = Math.floor(step / 70);
      return (high > 0 ? String.fromCodePoint(40 + 69 + high) : "") + String.fromCodePoint(40 + (step % 70));
    }).join("");
    return `${shared.toString(36)}\t${term.slice(shared)}\t${places}`;
  });
  return JSON.stringify([rows, allTerms.join("\n")]);
}

