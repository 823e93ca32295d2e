// The search of /docs, as it was built: what it weighs, and that the questions of newcomers are answered.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { beforeAll, expect, test } from "vitest";
import { questions } from "./questions";

interface Hit { address: string; heading: string }

const assets = join(import.meta.dirname, "../dist/docs/assets");
const name = readdirSync(assets).find((one) => /^search-\w+\.js\.gz$/.test(one))!;
let find: (question: string) => Hit[];

beforeAll(async () => {
  // What it imports by address alone are helpers of the bundler.
  const script = gunzipSync(readFileSync(join(assets, name))).toString().replace(/^(import"[^"]+";)+/, "");
  ({ find } = await import(/* @vite-ignore */ `data:text/javascript;base64,${Buffer.from(script).toString("base64")}`));
});

test("the search and its index have at most 60 KB", () => {
  expect(readFileSync(join(assets, name)).length).toBeLessThanOrEqual(60_000);
});

test("each question of a newcomer is answered by the first hit", () => {
  expect(questions.length).toBeGreaterThanOrEqual(40);
  const wrong = questions.flatMap(([question, page, place]) => {
    const hits = find(question).map(({ address }) => address);
    const isAnswer = (address = "") => (place ? address === `${page}#${place}` : address.split("#")[0] === page);
    return isAnswer(hits[0]) ? [] : [`${question}: ${hits.slice(0, 4).join(", ")} (wanted ${hits.findIndex(isAnswer) + 1}: ${page}#${place ?? ""})`];
  });
  expect(wrong).toEqual([]);
});

test("a word that is not typed to its end finds what it may become", () => {
  expect(find("leaderb")[0]!.heading.toLowerCase()).toContain("leaderboard");
  expect(find("insufficient_f")[0]!.address).toBe("/docs/errors/insufficient_funds");
  expect(find("qqqqqq")).toEqual([]);
});
