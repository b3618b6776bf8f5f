import assert from "node:assert/strict";
import { test } from "node:test";
import { PodPhase, PodStatus } from "@forage/proto/forage/agent/v1/agent";
import { pino } from "pino";
import { aPod } from "../../test/support/entries.ts";
import { aView } from "../../test/support/view.ts";
import { changesOf, recordHello, recordStatuses, vanishedPods } from "./reports.ts";

const log = pino({ level: "silent" });
const RUNNING = { phase: PodPhase.RUNNING, ready: true };

test("stores a node's reports about its pods once", async (t) => {
  const view = await aView(t, { pods: [aPod({ name: "a" }), aPod({ name: "b" })] });
  const statuses = [said("a", RUNNING), said("b", { phase: PodPhase.PENDING })];
  await recordStatuses("n1", statuses, { ...view, log });
  const { revision } = view.store;
  assert.equal(view.state.pod("shop", "a")?.status?.ready, true);
  assert.equal(view.state.pod("shop", "b")?.status?.phase, PodPhase.PENDING);
  assert.equal(view.state.pod("shop", "a")?.observedAtMs, view.clock.nowMs());
  await recordStatuses("n1", statuses, { ...view, log });
  assert.equal(view.store.revision, revision, "unchanged statuses are not written");
});

test("ignores a node's reports about other nodes' pods and about unknown pods", async (t) => {
  const { state } = await aView(t, {
    pods: [aPod({ name: "a", node: "n2" }), aPod({ name: "b", node: "" })],
  });
  const statuses = [said("a", { phase: PodPhase.REMOVED }), said("b", RUNNING), said("c", RUNNING)];
  assert.deepEqual(changesOf("n1", statuses, state, 0), []);
});

test("removes all records of a pod that its node has removed", async (t) => {
  const view = await aView(t, { pods: [aPod({ name: "a", stopping: true, status: RUNNING })] });
  await recordStatuses("n1", [said("a", { phase: PodPhase.REMOVED })], { ...view, log });
  assert.deepEqual(view.state.pods(), []);
  assert.deepEqual((await view.store.range("")).records, []);
});

test("stores the last of two reports about a pod", async (t) => {
  const view = await aView(t, { pods: [aPod({ name: "a" }), aPod({ name: "b" })] });
  const statuses = [
    said("a", { phase: PodPhase.PENDING }),
    said("b", RUNNING),
    said("a", RUNNING),
    said("b", { phase: PodPhase.REMOVED }),
  ];
  await recordStatuses("n1", statuses, { ...view, log });
  assert.equal(view.state.pod("shop", "a")?.status?.ready, true);
  assert.equal(view.state.pod("shop", "b"), undefined);
});

test("writes a report of many pods in several transactions", async (t) => {
  const names = Array.from({ length: 200 }, (_, index) => `p${index}`);
  const view = await aView(t, { pods: names.map((name) => aPod({ name })) });
  await recordStatuses(
    "n1",
    names.map((name) => said(name, { ...RUNNING, message: "x".repeat(2_000) })),
    { ...view, log },
  );
  assert.ok(view.state.pods().every(({ status }) => status?.ready));
});

test("writes statuses that are too large for one transaction", async (t) => {
  const names = Array.from({ length: 20 }, (_, index) => `p${index}`);
  const view = await aView(t, { pods: names.map((name) => aPod({ name })) });
  await recordStatuses(
    "n1",
    names.map((name) => said(name, { ...RUNNING, message: "x".repeat(200_000) })),
    { ...view, log },
  );
  assert.ok(view.state.pods().every(({ status }) => status?.ready));
});

test("removes stopping pods that their node doesn't report", async (t) => {
  const pods = [
    aPod({ name: "stopping", stopping: true }),
    aPod({ name: "known", stopping: true }),
    aPod({ name: "new" }),
    aPod({ name: "elsewhere", stopping: true, node: "n2" }),
  ];
  const view = await aView(t, { pods });
  const known = [said("known", { phase: PodPhase.STOPPING })];
  assert.deepEqual(
    vanishedPods("n1", known, view.state).map(({ record }) => record.name),
    ["stopping"],
  );
  await recordHello("n1", known, { ...view, log });
  const left = view.state.pods().map(({ record }) => record.name);
  assert.deepEqual(left.sort(), ["elsewhere", "known", "new"]);
});

function said(name: string, status: object): PodStatus {
  return PodStatus.fromPartial({ uid: `uid-${name}`, namespace: "shop", name, ...status });
}
