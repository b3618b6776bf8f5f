import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ContentStage,
  TransferKind,
  type TransferOrder,
  TransferState,
  WorkspaceOrder,
  WorkspaceReport,
} from "@forage/proto/forage/workspaces/v1/workspaces";
import { isDesired, nextWork, type WorkspaceView } from "./next-work.ts";

const FINAL: TransferOrder = { id: "final", kind: TransferKind.FINAL_BACKUP, object: "o/final" };
const SNAPSHOT: TransferOrder = { id: "snapshot", kind: TransferKind.SNAPSHOT, object: "o/snapshot" };

function view(change: {
  order?: Parameters<typeof WorkspaceOrder.fromPartial>[0];
  report?: Parameters<typeof WorkspaceReport.fromPartial>[0];
  podActive?: boolean;
  notBeforeMs?: readonly (readonly [string, number])[];
}): WorkspaceView {
  return {
    order: WorkspaceOrder.fromPartial({ instanceId: "a", ...change.order }),
    report: WorkspaceReport.fromPartial({ instanceId: "a", stage: ContentStage.READY, ...change.report }),
    podActive: change.podActive ?? false,
    gitStatusRead: false,
    notBeforeMs: new Map(change.notBeforeMs),
    monotonicMs: 1_000,
  };
}

const workOf = (change: Parameters<typeof view>[0]): string => {
  const decision = nextWork(view(change));
  if (decision.type === "wait")
    return decision.forPod ? "wait for the pod" : `wait until ${decision.untilMs}`;
  return decision.work.type === "transfer" ? decision.work.transfer.id : decision.work.type;
};

test("completes the content first", () => {
  const report = { stage: ContentStage.INITIALIZING };
  assert.equal(workOf({ report, order: { transfers: [FINAL] } }), "initialize");
});

test("makes snapshots while the pod runs, and the final backup only after it has ended", () => {
  const order = { transfers: [FINAL, SNAPSHOT] };
  assert.equal(workOf({ order, podActive: true }), "snapshot");
  const report = { transfers: [{ id: "snapshot", state: TransferState.DONE }] };
  assert.equal(workOf({ order, report, podActive: true }), "wait for the pod");
  assert.equal(workOf({ order, report }), "final");
});

test("reads the Git status between the end of the pod and the final backup", () => {
  const order = { transfers: [FINAL], readGitStatus: true };
  assert.equal(workOf({ order, podActive: true }), "wait for the pod");
  assert.equal(workOf({ order }), "read-git-status");
  assert.equal(workOf({ order, report: { gitStatus: {} } }), "final");
});

test("never repeats a transfer that is done", () => {
  const transfers = [{ id: "final", state: TransferState.DONE }];
  assert.equal(workOf({ order: { transfers: [FINAL] }, report: { transfers } }), "wait until undefined");
});

test("repeats an interrupted or failed transfer", () => {
  for (const state of [TransferState.RUNNING, TransferState.RETRYING]) {
    const transfers = [{ id: "final", state }];
    assert.equal(workOf({ order: { transfers: [FINAL] }, report: { transfers } }), "final");
  }
});

test("waits for the end of a back-off", () => {
  const order = { transfers: [FINAL] };
  assert.equal(workOf({ order, notBeforeMs: [["transfer final", 5_000]] }), "wait until 5000");
});

test("disposes of content only after the pod has ended, whatever the stage", () => {
  const order = { dispose: true, transfers: [FINAL] };
  assert.equal(workOf({ order, podActive: true }), "wait for the pod");
  for (const stage of [ContentStage.INITIALIZING, ContentStage.READY, ContentStage.FAILED])
    assert.equal(workOf({ order, report: { stage } }), "dispose");
});

test("does nothing after the content was disposed of", () => {
  const report = { stage: ContentStage.DISPOSED };
  assert.equal(workOf({ report, order: { dispose: true } }), "wait until undefined");
});

test("cancels work that the order no longer needs", () => {
  const order = view({ order: { transfers: [FINAL] } }).order;
  assert.equal(isDesired({ type: "transfer", transfer: FINAL }, order), true);
  assert.equal(isDesired({ type: "transfer", transfer: SNAPSHOT }, order), false);
  assert.equal(isDesired({ type: "initialize" }, { ...order, dispose: true }), false);
});
