import assert from "node:assert/strict";
import { WorkspacePhase } from "@forage/proto/core";
import type { DashboardTour } from "./dashboard-tour.ts";
import type { System } from "./system.ts";
import { WorkspaceCalls } from "./workspaces.ts";

/** Starts a workspace, checks how its pages show it, and stops it. */
export async function showWorkspace(tour: DashboardTour, system: System): Promise<void> {
  const { page } = tour;
  const calls = new WorkspaceCalls(system);
  try {
    await tour.visit("workspaces", "Workspaces");
    await page.getByText("There is no workspace.").waitFor();
    const { ownerToken, url } = await calls.start("shown");
    assert.notEqual(ownerToken, "");
    const link = page.getByRole("link", { name: "shown", exact: true });
    const row = page.getByRole("row").filter({ has: link });
    await row.getByText(/Running$/).waitFor();
    await row.getByText("n1", { exact: true }).waitFor();
    assert.equal(await row.getByRole("link", { name: "Open shown" }).getAttribute("href"), url);
    await tour.checked("workspaces");
    assert.equal((await page.content()).includes(ownerToken), false);
    await link.click();
    await page.getByRole("region", { name: "Why" }).waitFor();
    assert.equal((await page.content()).includes(ownerToken), false);
    await tour.visit("workspaces", "Workspaces");
    await calls.stop("shown");
    await row.getByText(/Stopped$/).waitFor();
    await calls.reaches("shown", WorkspacePhase.STOPPED);
  } finally {
    calls.close();
  }
}
