import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, chromium, type Page } from "playwright-core";

const CHROMIUM = "/usr/bin/chromium";
const LAUNCH_LIMIT_MS = 60_000;

/** Starts Debian's Chromium without a window. Root can't have its sandbox, and the pages are the project's own. */
export function startBrowser(): Promise<Browser> {
  const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
  return chromium.launch({ executablePath: CHROMIUM, args, timeout: LAUNCH_LIMIT_MS });
}

interface Finding {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/** Returns what the page lacks for WCAG 2.2 AA, as far as axe-core finds it: one line for each finding. */
export async function findAccessFaults(page: Page): Promise<string[]> {
  const path = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
  // Evaluated by the debugger, because the page's policy allows no scripts but its own.
  await page.evaluate(readFileSync(path, "utf8"));
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const { violations } = (await page.evaluate(
    `axe.run(document, { runOnly: { type: "tag", values: ${JSON.stringify(tags)} } })`,
  )) as { readonly violations: readonly Finding[] };
  return violations.map(
    ({ id, help, nodes }) =>
      `${id}: ${help}: ${nodes
        .slice(0, 3)
        .map(({ html, failureSummary = "" }) => `${html} (${failureSummary.replace(/\s+/g, " ")})`)
        .join(" | ")}`,
  );
}
