import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { NodeTaint } from "@forage/proto/forage/store/v1/store";
import { PodConfig, type Toleration } from "@forage/proto/forest/v1/forage";
import { pino } from "pino";
import { aNode, aPod } from "../../../test/support/entries.ts";
import { until } from "../../../test/support/until.ts";
import { aView } from "../../../test/support/view.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import { EvictionController } from "./controller.ts";
import { evictionOf } from "./eviction-of.ts";

const ADDED_MS = 1_000_000;
const noExecute = taint("gpu", "NoExecute");

test("evicts pods without a toleration at once for a NoExecute taint, and for no other effect", () => {
  assert.equal(at([]), ADDED_MS);
  assert.equal(at([{ key: "gpu", operator: "Exists", effect: "NoSchedule" }]), ADDED_MS);
  assert.equal(at([{ key: "gpu", value: "other" }]), ADDED_MS);
  assert.equal(at([], [taint("gpu", "NoSchedule"), taint("x", "PreferNoSchedule")]), undefined);
  assert.equal(at([], []), undefined);
});

test("keeps pods that tolerate a taint, without limit or for toleration_seconds", () => {
  assert.equal(at([{ key: "gpu", operator: "Exists" }]), undefined);
  assert.equal(at([{ key: "gpu", value: "yes", effect: "NoExecute" }]), undefined);
  const for30s = { key: "gpu", operator: "Exists", effect: "NoExecute", tolerationSeconds: 30n };
  assert.equal(at([for30s]), ADDED_MS + 30_000);
  assert.equal(at([{ ...for30s, tolerationSeconds: -1n }]), ADDED_MS);
  assert.equal(at([for30s, { operator: "Exists" }]), ADDED_MS + 30_000, "the first that matches counts");
});

test("of several taints the earliest eviction counts, never counted from before the pod's binding", () => {
  const tolerations = [
    { key: "a", operator: "Exists", effect: "NoExecute", tolerationSeconds: 60n },
    { key: "b", operator: "Exists", effect: "NoExecute", tolerationSeconds: 5n },
  ];
  const taints = [taint("a", "NoExecute"), taint("b", "NoExecute")];
  assert.equal(at(tolerations, taints), ADDED_MS + 5000);
  assert.equal(at(tolerations, taints, ADDED_MS + 1000), ADDED_MS + 6000);
  assert.equal(at(tolerations.slice(0, 1), taints), ADDED_MS);
});

test("pods without a toleration for lost nodes stay for the configured time, others for their toleration's time", () => {
  const unreachable = { ...taint("node.kubernetes.io/unreachable", "NoExecute"), value: "" };
  const notReady = { ...taint("node.kubernetes.io/not-ready", "NoExecute"), value: "" };
  const defaults = { unreachableMs: 3_000, notReadyMs: 300_000 };
  const leaves = (tolerations: Tolerations, taints: NodeTaint[]): number | undefined =>
    evictionOf(pod("p", tolerations).record, taints, defaults)?.atMs;
  assert.equal(leaves([], [unreachable]), ADDED_MS + 3_000);
  assert.equal(leaves([], [notReady]), ADDED_MS + 300_000);
  assert.equal(leaves([], [notReady, unreachable]), ADDED_MS + 3_000);
  const forAnHour = {
    key: unreachable.key,
    operator: "Exists",
    effect: "NoExecute",
    tolerationSeconds: 3_600n,
  };
  assert.equal(leaves([forAnHour], [unreachable]), ADDED_MS + 3_600_000);
  assert.equal(leaves([forAnHour], [unreachable, notReady]), ADDED_MS + 300_000);
  assert.equal(leaves([{ operator: "Exists" }], [unreachable, notReady]), undefined);
});

test("evicts pods when their toleration expires, with the taint as the reason", {
  timeout: 120_000,
}, async (t) => {
  const { state, clock } = await start(t);
  const stopped = (name: string) => state.pod("shop", name)?.record.stoppingSince !== undefined;
  await until("the one that tolerates nothing is stopped", () => stopped("none"));
  assert.equal(state.pod("shop", "none")?.record.stopReason, "its node has the taint gpu=yes:NoExecute");
  await until("the other waits for its time", () => clock.pending > 0);
  clock.advance(29_999);
  assert.equal(stopped("patient"), false);
  clock.advance(1);
  await until("its time is over", () => stopped("patient"));
  assert.equal(stopped("always"), false);
  assert.equal(stopped("elsewhere"), false);
});

async function start(t: TestContext) {
  const node = aNode({ name: "n1" });
  node.record.taints = [NodeTaint.fromPartial({ ...noExecute })];
  const for30s = { key: "gpu", operator: "Exists", effect: "NoExecute", tolerationSeconds: 30n };
  const pods = [
    pod("none", []),
    pod("patient", [for30s]),
    pod("always", [{ operator: "Exists" }]),
    { ...aPod({ name: "elsewhere", node: "n2" }) },
  ];
  const view = await aView(t, { nodes: [node, aNode({ name: "n2" })], pods });
  const controller = new EvictionController({
    ...view,
    log: pino({ level: "silent" }),
    events: { record: () => {} },
  });
  t.after(() => controller.close());
  return view;
}

type Tolerations = readonly Partial<Toleration>[];

function at(tolerations: Tolerations, taints = [noExecute], boundMs = 0): number | undefined {
  const { record } = pod("p", tolerations);
  return evictionOf({ ...record, boundAt: toTimestamp(boundMs) }, taints)?.atMs;
}

function pod(name: string, tolerations: Tolerations) {
  const made = aPod({ name });
  const { template } = made.record;
  assert.ok(template);
  template.podConfig = PodConfig.fromPartial({ tolerations: [...tolerations] });
  return made;
}

function taint(key: string, effect: string): NodeTaint {
  return NodeTaint.fromPartial({ key, value: "yes", effect, addedAt: toTimestamp(ADDED_MS) });
}
