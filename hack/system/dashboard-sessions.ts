import assert from "node:assert/strict";
import type { DashboardTour } from "./dashboard-tour.ts";
import type { System } from "./system.ts";

const MANIFEST = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: front }\n";
const SECRET = "apiVersion: v1\nkind: Secret\nmetadata: { name: db }\nstringData: { password: beans }\n";

/** Ends two sessions of the page, one during use and one while it is idle, and logs in again each time. */
export async function outliveSessions(tour: DashboardTour, system: System, token: string): Promise<void> {
  const { page } = tour;
  const created = ["token", "create", "--role", "editor"];
  const { id, token: other } = await system.ask<{ id: string; token: string }>(created);
  await tour.visit("fleet", "Fleet");
  // Without the cookie the coordinator doesn't know the session, as after its expiry. Open streams continue, and the
  // next request is refused.
  await tour.context.clearCookies();
  await page.evaluate('location.hash = "#/nodes/n1"');
  await page.getByText("The session has ended").waitFor();
  await tour.checked("login-again");
  await logInAgain(tour, other, "n1");
  await page.getByRole("region", { name: "Why" }).waitFor();
  // No request follows. The streams end with the token, and are refused when the browser opens them again.
  const { exitCode, stderr } = await system.forageInProcess(["token", "revoke", id]);
  assert.equal(exitCode, 0, stderr);
  await logInAgain(tour, token, "n1");
  await page.getByRole("region", { name: "Why" }).waitFor();
}

/**
 * Ends sessions while a manifest is on the page. It must be there again after the login, unless it may contain secrets.
 */
export async function keepPastedManifests(tour: DashboardTour, token: string): Promise<void> {
  const { page } = tour;
  const manifest = page.locator("#manifest");
  await tour.visit("plan", "Plan");
  for (const pasted of [MANIFEST, SECRET]) {
    await manifest.fill(pasted);
    await tour.context.clearCookies();
    await page.getByRole("button", { name: "Show the plan" }).click();
    await logInAgain(tour, token, "Plan");
    assert.equal(await manifest.inputValue(), pasted === MANIFEST ? MANIFEST : "");
    assert.equal(await page.evaluate("sessionStorage.length"), 0, "nothing stays in the browser");
  }
  await page.getByRole("status").getByText("may hold values of secrets").waitFor();
}

async function logInAgain(tour: DashboardTour, token: string, heading: string): Promise<void> {
  const { page } = tour;
  await page.getByText("The session has ended").waitFor();
  assert.equal(await page.getByRole("navigation").count(), 0, "nothing of the page is left");
  await page.getByLabel("API token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
  await tour.shows(heading);
}
