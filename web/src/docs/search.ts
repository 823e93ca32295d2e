// The search: it is loaded when the field is focused, with its index.
import text from "search-index";
import { synonyms, termsOf } from "./search_words";

export interface Hit {
  address: string;
  heading: string;
  page: string; // the title of the page
  group: string; // of the page
}

interface Section extends Hit {
  terms: Map<string, number>; // with the weight of the place where each stands
  weight: number;
}

const weightOfText = 1;
const common = new Map<string, number>(); // terms of too many sections to list, with their number

/** Reads the index that render/search_index.ts writes. */
function readIndex(): Section[] {
  const [pages, allTerms] = JSON.parse(text) as [pages: [string, string, string, number, string[]][], allTerms: string];
  const sections: Section[] = [];
  for (const [path, title, group, weight, rows] of pages) {
    rows.forEach((row, n) => {
      const [place, heading, keys] = row.split("\t") as [string, string, string?];
      const terms = new Map<string, number>();
      const note = (words: string, points: number) => termsOf(words).forEach((one) => terms.set(one, Math.max(points, terms.get(one) ?? 0)));
      note(title, n ? 2.5 : 6);
      note(place, 3); // such as the name of an operation
      for (const key of (keys ?? "").toLowerCase().split(" ")) terms.set(key, 4);
      note(heading || title, 6);
      sections.push({
        address: path + (place && `#${place}`), heading: heading || title, page: title, group, terms,
        weight: weight * (n === 0 ? 1.15 : /^[A-Z]/.test(place) ? 0.5 : 1), // a type is looked up from where it is used
      });
    });
  }
  let previous = "";
  for (const line of allTerms.split("\n")) {
    const [shared, end, places, count] = line.split("\t") as [string, string, string, string?];
    previous = previous.slice(0, Number.parseInt(shared, 36)) + end;
    if (count) common.set(previous, Number(count));
    let at = -1;
    let high = 0;
    for (const letter of places) {
      const digit = letter.codePointAt(0)! - 40;
      if (digit >= 70) high = (digit - 69) * 70; // the first of two digits; 70 of them are low
      else {
        at += high + digit + 1;
        high = 0;
        const { terms } = sections[at]!;
        if (!terms.has(previous)) terms.set(previous, weightOfText);
      }
    }
  }
  return sections;
}

let sections: Section[];
let rarity: (term: string) => number;
let allTerms: string[];

function open(): void {
  if (sections) return;
  sections = readIndex();
  const counts = new Map(common);
  for (const { terms } of sections) for (const term of terms.keys()) counts.set(term, (counts.get(term) ?? 0) + 1);
  const weightOfTerm = (term: string) => (term === "player" ? 0.5 : 1); // nearly every question is about one
  rarity = (term) => weightOfTerm(term) * Math.log(1 + sections.length / (counts.get(term) ?? sections.length));
  allTerms = [...counts.keys()];
}

/** Returns the sections that fit a question, the best first. */
export function find(question: string, most = 12): Hit[] {
  open();
  const asked = [...new Set(termsOf(question))];
  if (asked.length === 0) return [];
  const isTyping = !/\s$/.test(question);
  // Each term of the question, with those that stand for it and what they count.
  const wanted = asked.map((term, n) => {
    const forms = new Map([[term, 1]]);
    for (const other of synonyms.get(term) ?? []) if (!forms.has(other)) forms.set(other, 0.75);
    if (isTyping && n === asked.length - 1 && term.length > 1) {
      for (const one of allTerms) if (one.startsWith(term) && !forms.has(one)) forms.set(one, 0.5);
    }
    return [...forms].map(([form, part]) => ({ form, points: part * rarity(form) }));
  });
  const whole = wanted.reduce((sum, forms) => sum + rarity(forms[0]!.form), 0);
  const scored = sections.map((section) => {
    let score = 0;
    let found = 0; // rare terms count for more
    for (const forms of wanted) {
      let best = 0;
      let sum = 0;
      for (const { form, points } of forms) {
        const one = points * (section.terms.get(form) ?? 0);
        best = Math.max(best, one);
        sum += one;
      }
      if (best > 0) found += rarity(forms[0]!.form);
      score += best + (sum - best) / 4;
    }
    // A heading with nothing but what was asked for is the better one.
    const length = 1 + termsOf(section.heading).length / 12;
    return { section, score: (score * section.weight * (found / whole) ** 1.5) / length };
  });
  return scored.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score).slice(0, most).map(({ section }) => section);
}
