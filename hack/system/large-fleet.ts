import assert from "node:assert/strict";
import { hollowMessage } from "../lib/hollow-rows.ts";
import type { DashboardTour } from "./dashboard-tour.ts";

/** Shows the pages a fleet of 1,000 nodes and 10,000 pods that doesn't exist, and walks through its tables. */
export async function checkLargeFleet(tour: DashboardTour): Promise<void> {
  const { page } = tour;
  const message = JSON.stringify(hollowMessage(1_000, 10_000));
  const stream = { contentType: "text/event-stream", body: `retry: 600000\n\ndata: ${message}\n\n` };
  await page.route("**/api/live", (route) => route.fulfill(stream));
  await page.reload();
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
