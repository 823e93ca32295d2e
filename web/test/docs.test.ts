// The pages of /docs, served by a real node and shown by a real browser.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findViolations } from "./axe";
import { startBrowser, startNode, type Node } from "./node";

const dist = join(import.meta.dirname, "../dist/docs");
const paths = readdirSync(dist, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".html.br") && !name.startsWith("404") && !name.endsWith(".dev.html.br"))
  .map((name) => `/docs/${name.replace(/(index)?\.html\.br$/, "")}`.replace(/\/$/, ""))
  .sort();

/** Every page, and what an address without one shows. */
const everyPage = [...paths, "/docs/unknown"];

/** One page of each kind, which is checked by all rules on a narrow screen too. */
const ofEachKind = ["/docs", "/docs/start", "/docs/sdk/room", "/docs/errors", "/docs/http/rooms", "/docs/examples/duel"];

let node: Node;
let browser: Browser;

beforeAll(async () => {
  [node, browser] = await Promise.all([startNode(), startBrowser()]);
}, 300_000);

afterAll(async () => {
  await browser?.close();
  await node?.stop();
});

test("every page has its text, and every link leads to a page and a place on it", async () => {
  const pages = new Map<string, string>();
  for (const path of paths) {
    const reply = await fetch(node.url + path);
    expect(reply.status, path).toBe(200);
    pages.set(path, await reply.text());
  }
  const broken: string[] = [];
  for (const [path, html] of pages) {
    expect(html, path).toMatch(/<h1>.+<\/h1>/s);
    expect(html, `${path} has an inline script`).not.toMatch(/<script(?![^>]* src=)/);
    expect(html, `${path} has an inline style`).not.toMatch(/<style|\sstyle=/);
    for (const [, href] of html.matchAll(/href="([^"]+)"/g)) {
      if (/^(data:|https:)/.test(href!) || href!.startsWith("/docs/assets/") || href!.endsWith("api.yaml") || /^\/(play|docs\/llms.txt)$/.test(href!)) continue;
      const [target, anchor] = href!.split("#") as [string, string?];
      const there = pages.get(target === "" ? path : target.split("?")[0]!);
      if (!there || anchor && !there.includes(`id="${anchor}"`)) broken.push(`${path}: ${href}`);
    }
  }
  expect(broken).toEqual([]);
});

test("the type of a problem leads to its page", async () => {
  const problem = await (await fetch(`${node.url}/api/v1/me`)).json() as { type: string; code: string };
  expect(problem.type).toBe(`/docs/errors/${problem.code}`);
  const page = await fetch(node.url + problem.type);
  expect(page.status).toBe(200);
  expect(await page.text()).toContain(problem.code);
});

test("every code of the SDK has a page, also those that no response has", async () => {
  const codes = readFileSync(join(import.meta.dirname, "../../sdk/src/generated/codes.ts"), "utf8");
  const all = [...codes.matchAll(/^ {2}\| "(\w+)"/gm)].map(([, code]) => `/docs/errors/${code}`);
  expect(all).toContain("/docs/errors/offline");
  expect(all.filter((path) => !paths.includes(path))).toEqual([]);
  expect(paths.filter((path) => path.startsWith("/docs/errors/") && !all.includes(path))).toEqual([]);
});

// How texts look on the pages whose contrast was checked in the dark theme.
const darkLooks = new Set<string>();

/** Returns all that contrast depends on, once for each way in which a text of the page looks. */
function findLooks(): string[] {
  const grounds = new Map<Element, string>();
  const groundOf = (element: Element | null): string => {
    if (!element) return "";
    if (!grounds.has(element)) {
      const { backgroundColor, backgroundImage, opacity } = getComputedStyle(element);
      const own = `${backgroundColor} ${backgroundImage} ${opacity}`;
      grounds.set(element, groundOf(element.parentElement) + (own === "rgba(0, 0, 0, 0) none 1" ? "" : `|${own}`));
    }
    return grounds.get(element)!;
  };
  const looks = [...document.querySelectorAll("body *")].filter((element) => element.matches("input, select, textarea") ||
    [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent!.trim() !== ""),
  ).map((element) => {
    const { color, fontSize, fontWeight } = getComputedStyle(element);
    return `${color} ${fontSize} ${fontWeight}${groundOf(element)}`;
  });
  return [...new Set(looks)];
}

/** Returns what is wrong with pages, each as its first visitor gets it. */
async function findFaults(take: () => string | undefined): Promise<string[]> {
  const context = await browser.newContext();
  const page = await context.newPage();
  const browserSession = await context.newCDPSession(page);
  await browserSession.send("Network.enable");
  await browserSession.send("Network.setCacheDisabled", { cacheDisabled: true });
  const faults: string[] = [];
  let path: string | undefined;
  let sizes: Promise<number>[] = [];
  const complain = (fault: string) => faults.push(`${path}: ${fault}`);
  page.on("console", (message) => {
    const expected = path === "/docs/unknown" && message.text().includes("404");
    if (message.type() === "error" && !expected) complain(message.text());
  });
  page.on("pageerror", (error) => complain(error.message));
  page.on("requestfinished", (request) => {
    sizes.push(request.sizes().then((all) => all.responseBodySize + all.responseHeadersSize));
    if (!request.url().startsWith(node.url) && !request.url().startsWith("data:")) complain(`asks ${request.url()}`);
  });
  while ((path = take()) !== undefined) {
    sizes = [];
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.emulateMedia({ colorScheme: "light" });
    await page.goto(node.url + path);
    const transferred = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    if (transferred < 5000 || transferred >= 100_000) complain(`${transferred} bytes are transferred`);
    (await findViolations(page)).forEach(complain);
    await page.emulateMedia({ colorScheme: "dark" });
    const looks = (await page.evaluate(findLooks)).filter((one) => !darkLooks.has(one));
    looks.forEach((one) => darkLooks.add(one));
    if (looks.length > 0) (await findViolations(page, ["color-contrast"])).forEach(complain);
    await page.setViewportSize({ width: 320, height: 700 });
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    if (width > 320) complain(`scrolls sideways: ${width} of 320`);
    if (ofEachKind.includes(path)) (await findViolations(page)).forEach(complain);
  }
  await context.close();
  return faults;
}

test("every page is accessible in both themes, quiet, light, and fits a narrow screen", async () => {
  expect(everyPage.length).toBeGreaterThan(90);
  const left = [...everyPage];
  const take = () => left.shift();
  expect((await Promise.all([findFaults(take), findFaults(take)])).flat()).toEqual([]);
}, 900_000); // each page is looked at three times or more, and the tests of Go keep both cores busy meanwhile

test("the theme that was chosen stays", async () => {
  const context = await browser.newContext({ colorScheme: "light" });
  const page = await context.newPage();
  const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  await page.goto(`${node.url}/docs`);
  const light = await background();
  await page.click("[data-act=theme]");
  const dark = await background();
  expect(dark).not.toBe(light);
  await page.goto(`${node.url}/docs/errors`);
  expect(await background()).toBe(dark);
  await context.close();
}, 30_000);

test("an operation can be tried in developer mode", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${node.url}/docs/try?operation=guest`);
  await page.click("button[type=submit]");
  await page.waitForFunction(() => document.querySelector("#status")!.textContent!.startsWith("201"));
  const session = JSON.parse(await page.textContent("#response") ?? "") as { accessToken: string };
  await page.selectOption("#operation", "me");
  await page.fill("#token", session.accessToken);
  await page.click("button[type=submit]");
  await page.waitForFunction(() => document.querySelector("#status")!.textContent!.startsWith("200"));
  expect(await page.textContent("#response")).toContain("username");
  await context.close();
}, 30_000);
