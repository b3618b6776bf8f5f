import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, chromium, type Page } from "playwright-core";

const CHROMIUM = "/usr/bin/chromium";
const LAUNCH_LIMIT_MS = 60_000;

/**
 * Starts Debian's Chromium without a window and without its sandbox, which root can't use. The pages are the project's
 * own.
 */
export function startBrowser(): Promise<Browser> {
  const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
  return chromium.launch({ executablePath: CHROMIUM, args, timeout: LAUNCH_LIMIT_MS });
}

interface Finding {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/** The rules whose findings depend on colours and widths. */
export const APPEARANCE_RULES = ["color-contrast", "target-size", "scrollable-region-focusable"] as const;

/** Returns the violations of WCAG 2.2 AA that axe-core finds on the page, one line each. Default: by all rules. */
export async function findAccessFaults(page: Page, rules: readonly string[] = []): Promise<string[]> {
  const path = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
  // The debugger evaluates the script, because the page's policy allows only its own scripts. It remains until the page
  // is reloaded.
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(readFileSync(path, "utf8"));
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const runOnly = rules.length === 0 ? { type: "tag", values: tags } : { type: "rule", values: rules };
  const { violations } = (await page.evaluate(
    `axe.run(document, ${JSON.stringify({ runOnly, resultTypes: ["violations"] })})`,
  )) as { readonly violations: readonly Finding[] };
  return violations.map(
    ({ id, help, nodes }) =>
      `${id}: ${help}: ${nodes
        .slice(0, 3)
        .map(({ html, failureSummary = "" }) => `${html} (${failureSummary.replace(/\s+/g, " ")})`)
        .join(" | ")}`,
  );
}

/** Returns the number of pixels of a graph that have the colour of its line. A single point has none. */
export async function linePixels(page: Page, title: string): Promise<number> {
  const canvas = `figure[aria-label^=${JSON.stringify(title)}] canvas`;
  const count = await page.evaluate(`(() => {
    const canvas = document.querySelector(${JSON.stringify(canvas)});
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const near = (at, value) => Math.abs(data[at] - value) < 16;
    let count = 0;
    for (let at = 0; at < data.length; at += 4)
      if (near(at, 0x2e) && near(at + 1, 0x9e) && near(at + 2, 0x5b) && data[at + 3] > 200) count++;
    return count;
  })()`);
  return Number(count);
}
