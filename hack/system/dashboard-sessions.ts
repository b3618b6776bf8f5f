import assert from "node:assert/strict";
import type { DashboardTour } from "./dashboard-tour.ts";
import type { System } from "./system.ts";

/** Ends two sessions of the page, one while it is used and one while it is not, and logs in again each time. */
export async function outliveSessions(tour: DashboardTour, system: System, token: string): Promise<void> {
  const { page } = tour;
  const logInAgain = async (own: string): Promise<void> => {
    await page.getByText("The session has ended").waitFor();
    assert.equal(await page.getByRole("navigation").count(), 0, "nothing of the page is left");
    await page.getByLabel("API token").fill(own);
    await page.getByRole("button", { name: "Log in" }).click();
    await tour.shows("n1");
    await page.getByRole("region", { name: "Why" }).waitFor();
  };
  const created = ["token", "create", "--role", "editor"];
  const { id, token: other } = await system.ask<{ id: string; token: string }>(created);
  await tour.visit("fleet", "Fleet");
  // The coordinator doesn't know the session, as after its time. The open streams go on, and the next request is refused.
  await tour.context.clearCookies();
  await page.evaluate('location.hash = "#/nodes/n1"');
  await logInAgain(other);
  // No request follows. The streams end with the token, and are refused when the browser opens them again.
  const { exitCode, stderr } = await system.forageInProcess(["token", "revoke", id]);
  assert.equal(exitCode, 0, stderr);
  await logInAgain(token);
}
