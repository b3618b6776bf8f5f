import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock } from "@forage/common/clock";
import type { Page } from "playwright-core";
import { bundlePrograms } from "../../hack/bundling/bundle-programs.ts";
import { startBrowser } from "../../hack/lib/browser.ts";
import { makeHollowFleet } from "./hollow-fleet.ts";
import { servePage } from "./serve-page.ts";

const CHANGES_PER_SECOND = 400;
const CHANGE_EVERY_MS = 250;
const MIB = 1024 ** 2;
const root = join(import.meta.dirname, "../..");

/** Measures the dashboard in Chromium with a large fleet: the page, and the part of the coordinator that feeds it. */
export async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      nodes: { type: "string", default: "1000" },
      pods: { type: "string", default: "10000" },
      seconds: { type: "string", default: "20" },
    },
  });
  const [nodes, pods, seconds] = [Number(values.nodes), Number(values.pods), Number(values.seconds)];
  const outDir = join(root, "dist");
  await bundlePrograms({ root, outDir, programs: { dashboard: "coordinator/dashboard/main.tsx" } });
  const fleet = makeHollowFleet(nodes, pods, systemClock);
  const heapBefore = heapBytes();
  const server = await servePage(join(outDir, "dashboard.json"), fleet.tables, systemClock);
  const browser = await startBrowser();
  try {
    const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
    const begun = performance.now();
    await page.goto(`${server.url}#/pods`);
    await page.getByText(`${pods.toLocaleString("en")} pods`).waitFor({ timeout: 120_000 });
    const loadedMs = performance.now() - begun;
    const windowBytes = heapBytes() - heapBefore;
    const rows = await page.getByRole("row").count();
    const { processorPercent, longestFrameMs } = await underChanges(page, fleet.change, seconds);
    const pageBytes = Number(await page.evaluate("performance.memory.usedJSHeapSize"));
    print({
      ...{ nodes, pods, seconds, changesPerSecond: CHANGES_PER_SECOND },
      ...{ loadedMs: Math.round(loadedMs), rows },
      pageMiB: rounded(pageBytes / MIB),
      windowMiB: rounded(windowBytes / MIB),
      ...{ processorPercent: rounded(processorPercent), longestFrameMs: Math.round(longestFrameMs) },
    });
  } finally {
    await browser.close();
    await server.close();
  }
}

/** Changes pods at a steady rate, and measures this process and the page's frames meanwhile. */
async function underChanges(page: Page, change: (count: number) => void, seconds: number) {
  await page.evaluate(`(() => {
    let last = performance.now();
    window.longestFrameMs = 0;
    const frame = (now) => {
      window.longestFrameMs = Math.max(window.longestFrameMs, now - last);
      last = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  })()`);
  const [begun, before] = [performance.now(), process.cpuUsage()];
  const timer = setInterval(() => change((CHANGES_PER_SECOND * CHANGE_EVERY_MS) / 1_000), CHANGE_EVERY_MS);
  await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
  clearInterval(timer);
  const { user, system } = process.cpuUsage(before);
  const processorPercent = ((user + system) / 1_000 / (performance.now() - begun)) * 100;
  return { processorPercent, longestFrameMs: Number(await page.evaluate("window.longestFrameMs")) };
}

function heapBytes(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}

function print(result: Readonly<Record<string, number>>): void {
  console.table(Object.entries(result).map(([quantity, value]) => ({ quantity, value })));
  console.log(JSON.stringify({ bench: "dashboard", ...result }));
}
