import assert from "node:assert/strict";
import { test } from "node:test";
import { Semaphore } from "@forage/common/semaphore";
import { VirtualClock } from "@forage/common/virtual-clock";
import {
  ContentSource,
  ContentStage,
  WorkspaceOrder,
  type WorkspaceReport,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import type { ContentActions } from "./content-actions.ts";
import { WORK_BACK_OFF, Workspace } from "./workspace.ts";
import { WorkspaceError } from "./workspace-error.ts";

const GIBIBYTE = 1024 ** 3;
const YEAR_MS = 365 * 24 * 3_600_000;

/** Returns a workspace whose content is on a server that fails until the test says otherwise. */
function aWorkspace(t: { after(hook: () => Promise<void>): void }) {
  const clock = new VirtualClock();
  const reports: WorkspaceReport[] = [];
  const server = { isAway: true, asked: 0 };
  const actions: Partial<ContentActions> = {
    initialize: async () => {
      server.asked += 1;
      if (server.isAway) throw new WorkspaceError("UNAVAILABLE", "the server is away");
      return { source: ContentSource.GIT, message: "" };
    },
    usedBytes: async () => 0,
  };
  const order = WorkspaceOrder.fromPartial({ instanceId: "a", podUid: "pod-a", version: 1n });
  const report = { ...emptyReport(), instanceId: "a" };
  const workspace = new Workspace(
    {
      ...{ clock, random: () => 0.5, actions: actions as ContentActions, backOff: WORK_BACK_OFF },
      records: { saveOrder: async () => undefined, saveReport: async () => undefined },
      ...{ initializeGate: new Semaphore(1), transferGate: new Semaphore(1) },
      ...{ podActive: () => true, contentReady: () => undefined, disposed: () => undefined },
      changed: (changed) => void reports.push(changed),
      log: { info: () => undefined, warn: () => undefined },
    },
    { order, report },
  );
  const closing = new AbortController();
  const running = workspace.run(closing.signal);
  t.after(async () => {
    closing.abort();
    await running;
  });
  /** Advances the clock until the server has been queried again. */
  const asksAgain = async (): Promise<void> => {
    const before = server.asked;
    for (let turn = 0; server.asked === before; turn++) {
      assert.ok(turn < 1_000, "the server is asked again");
      await new Promise((resolve) => setImmediate(resolve));
      clock.advance(1_000);
    }
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { clock, server, workspace, reports, asksAgain };
}

function emptyReport(): WorkspaceReport {
  return {
    ...{ instanceId: "", stage: ContentStage.INITIALIZING, message: "", source: 0, transfers: [] },
    ...{ orderVersion: 0n, gitStatus: undefined, usedBytes: 0n },
  };
}

test("reports the disk use when it has changed by one percent, and only while the content is ready", async (t) => {
  const { server, workspace, reports, asksAgain } = aWorkspace(t);
  workspace.noteUse(GIBIBYTE);
  server.isAway = false;
  await asksAgain();
  assert.equal(workspace.report.usedBytes, 0n);
  reports.length = 0;
  for (const usedBytes of [100, 101, 100.5, 99]) workspace.noteUse(usedBytes * GIBIBYTE);
  assert.deepEqual(
    reports.map(({ usedBytes }) => Number(usedBytes) / GIBIBYTE),
    [100, 101, 99],
  );
});

for (const jumpMs of [YEAR_MS, -YEAR_MS])
  test(`keeps retrying the initialization when the wall clock jumps by ${jumpMs} ms`, async (t) => {
    const { clock, server, workspace, reports, asksAgain } = aWorkspace(t);
    await asksAgain();
    clock.jumpWall(jumpMs);
    for (let tries = 0; tries < 3; tries++) await asksAgain();
    assert.match(workspace.report.message, /the server is away; the next attempt follows in \d+ s/);

    server.isAway = false;
    await asksAgain();
    assert.equal(workspace.report.stage, ContentStage.READY);
    assert.ok(!reports.some(({ stage }) => stage === ContentStage.FAILED));
  });
