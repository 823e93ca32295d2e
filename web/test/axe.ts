// Checks the accessibility of a page by axe-core.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/**
 * Returns the serious and critical violations of the page, each with the elements that have it.
 * rules limits the check: only contrast depends on the theme.
 */
export async function findViolations(page: Page, rules?: string[]): Promise<string[]> {
  if (!await page.evaluate(() => "axe" in window)) await page.evaluate(source);
  const results = await page.evaluate(async (only) => {
    const axe = (window as any).axe;
    return await axe.run(document, {
      // The path of every element that passes would take most of the time.
      resultTypes: ["violations"], selectors: false, preload: false, ...(only && { runOnly: only }),
    });
  }, rules);
  return results.violations
    .filter((one: any) => one.impact === "serious" || one.impact === "critical")
    .map((one: any) => `${one.id}: ${one.nodes.slice(0, 3).map((node: any) => `${node.html} ${node.any[0]?.message ?? ""}`).join(" | ")}`);
}
