import assert from "node:assert/strict";
import { findAccessFaults } from "../lib/browser.ts";
import { hollowMessage, hollowRollout } from "../lib/hollow-rows.ts";
import type { DashboardTour } from "./dashboard-tour.ts";

/** Sends the pages a simulated fleet of 1,000 nodes and 10,000 pods, and visits its tables. */
export async function checkLargeFleet(tour: DashboardTour): Promise<void> {
  const { page } = tour;
  await showInstead(tour, hollowMessage(1_000, 10_000));
  await tour.visit("fleet", "Fleet");
  await page.getByText("1,000 nodes · 3 zones").waitFor();
  await tour.picture("large-fleet");
  await tour.visit("pods", "Pods");
  await page.getByText("10,000 pods · 9,900 ready").waitFor();
  assert.ok((await page.getByRole("row").count()) < 100, "only the rows in view are in the document");
  await page.locator("[data-index='0']").focus();
  await page.keyboard.press("End");
  const last = page.locator("[data-index='9999']:focus");
  await last.waitFor();
  assert.equal(await last.textContent(), "web-9999");
  assert.ok((await page.getByRole("row").count()) < 100);
  await page.getByRole("searchbox").fill("edge-0007 crash");
  await page.getByText(/^0 pods/).waitFor();
  await page.getByRole("searchbox").fill("edge-0100 crash");
  await page.getByText("10 pods · 0 ready").waitFor();
  await page.unroute("**/api/live");
  await page.reload();
}

/** Shows the page of a workload whose replicas are starting, with the progress of each. */
export async function checkRolloutStages(tour: DashboardTour): Promise<void> {
  const { page } = tour;
  await showInstead(tour, hollowRollout("e2e"));
  await tour.visit("resources/e2e/container_service/web", "web");
  const replicas = page.getByRole("region", { name: "Replicas" });
  await replicas.getByText("1 of 5 ready, 5 of the newest revision").waitFor();
  const shown = await replicas
    .getByRole("progressbar")
    .evaluateAll((bars) =>
      bars.map((bar) => `${bar.getAttribute("aria-label")} ${bar.getAttribute("value")}`),
    );
  const words = ["Pending 0", "Placed 1", "ImagePull 40 % 1.4", "Starting 3", "Running 4"];
  assert.deepEqual(
    shown,
    words.map((word, index) => `web-${index + 1}: ${word}`),
  );
  assert.deepEqual(await findAccessFaults(page), []);
  await page.unroute("**/api/live");
  await page.reload();
}

/** Reloads the page with this message instead of the fleet's. */
async function showInstead({ page }: DashboardTour, rows: object): Promise<void> {
  const body = `retry: 600000\n\ndata: ${JSON.stringify(rows)}\n\n`;
  await page.route("**/api/live", (route) => route.fulfill({ contentType: "text/event-stream", body }));
  await page.reload();
}
