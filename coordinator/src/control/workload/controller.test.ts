import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { VirtualClock } from "@forage/common/virtual-clock";
import { PodPhase, PodStatus } from "@forage/proto/forage/agent/v1/agent";
import { AttemptState, PodRecord } from "@forage/proto/forage/store/v1/store";
import { pino } from "pino";
import { aNode, aPod, aWorkloadEntry, type PodFields } from "../../../test/support/entries.ts";
import { settled, until } from "../../../test/support/until.ts";
import { aView, type Contents, opsOf } from "../../../test/support/view.ts";
import { decodeRecord } from "../../model/codec.ts";
import type { PodEntry } from "../../state/entries.ts";
import { yieldMsOf } from "../yield-time.ts";
import { WorkloadController, type WorkloadControllerOptions } from "./controller.ts";

const LIMIT = { timeout: 120_000 };

test("creates replicas that are too large for one transaction, once each", LIMIT, async (t) => {
  const env = Array.from({ length: 10 }, (_, index) => {
    return { name: `V${index}`, valueSource: { $case: "value", value: "x".repeat(5_000) } };
  });
  const container = { name: "main", image: "app:v1", env };
  const spec = { scaling: { replicas: 120 }, container };
  const { state } = await start(t, { resources: [aWorkloadEntry({ spec })] });
  await until("all are made", () => state.pods().length >= 120);
  await settled();
  assert.equal(state.pods().length, 120);
  assert.equal(new Set(state.pods().map(({ record }) => record.uid)).size, 120);
});

test(
  "stores one template for the pods of a revision, and removes it with the last of them",
  LIMIT,
  async (t) => {
    const value = "x".repeat(400_000);
    const env = [{ name: "LARGE", valueSource: { $case: "value", value } }];
    const spec = { scaling: { replicas: 300 }, container: { name: "main", image: "app:v1", env } };
    const { state, store, clock } = await start(t, { resources: [aWorkloadEntry({ spec })] });
    await until("all are made", () => state.pods().length >= 300);
    const { records: pods } = await store.range("pods/", {});
    assert.ok(pods.every((record) => record.value.byteLength < 1_000));
    const { records: templates } = await store.range("pod-templates/", {});
    assert.equal(templates.length, 1);
    const [first] = state.pods();
    assert.deepEqual(first?.record.template?.container?.env[0]?.valueSource, { $case: "value", value });
    assert.ok(state.pods().every(({ record }) => record.template === first?.record.template));
    const more = { ...spec, scaling: { replicas: 301 } };
    await store.txn([], opsOf({ resources: [aWorkloadEntry({ spec: more })] }));
    await until(
      "one more is made",
      rested(clock, () => state.pods().length === 301),
    );
    const [again] = (await store.range("pod-templates/", {})).records;
    assert.equal(again?.modRevision, templates[0]?.modRevision, "it is not written again");
    await store.txn([], opsOf({ resources: [aWorkloadEntry({ spec, deleting: true })] }));
    const isGone = (): boolean => state.pods().length === 0 && state.resources().length === 0;
    await until("all is gone", rested(clock, isGone));
    const hasTemplate = (): boolean => state.podTemplates.ofWorkload("shop/container_service/web").length > 0;
    await until(
      "the template is gone",
      rested(clock, () => !hasTemplate()),
    );
    assert.deepEqual((await store.range("pod-templates/", {})).records, []);
  },
);

test("stores a template for a new revision, and removes the old one with the old pods", LIMIT, async (t) => {
  const spec = { scaling: { replicas: 2 }, updateStrategy: { type: "Recreate" } };
  const { state, store } = await start(t, { resources: [aWorkloadEntry({ spec })], nodes: [aNode()] });
  await until("two are made", () => state.pods().length === 2);
  const [before] = state.podTemplates.ofWorkload("shop/container_service/web");
  const container = { name: "main", image: "app:v2" };
  await store.txn([], opsOf({ resources: [aWorkloadEntry({ spec: { ...spec, container } })] }));
  const image = () => state.pods().map(({ record }) => record.template?.container?.image);
  await until("they are new", () => image().join() === "app:v2,app:v2");
  await until("one is left", () => state.podTemplates.ofWorkload("shop/container_service/web").length === 1);
  assert.notEqual(state.podTemplates.ofWorkload("shop/container_service/web")[0]?.key, before?.key);
});

test("a changed pod record keeps its reference to the template", LIMIT, async (t) => {
  const { state, store } = await start(t, {
    resources: [aWorkloadEntry({ spec: { scaling: { replicas: 1 } } })],
  });
  await until("it is made", () => state.pods().length === 1);
  const relabelled = aWorkloadEntry({ spec: { scaling: { replicas: 1 } }, labels: { release: "2" } });
  await store.txn([], opsOf({ resources: [relabelled] }));
  await until("it has the label", () => state.pods()[0]?.record.labels.release === "2");
  const stored = (await store.range("pods/", {})).records[0];
  const record = decodeRecord(PodRecord, "pods/x", stored?.value ?? new Uint8Array());
  assert.equal(record.template, undefined);
  assert.equal(record.templateRef, state.pods()[0]?.record.templateRef);
  assert.equal(state.pods()[0]?.record.template?.container?.image, "app:v1");
});

test("creates no pods before the coordinator has started", LIMIT, async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { state } = await start(t, { resources: [aWorkloadEntry()] }, promise);
  await settled();
  assert.equal(state.pods().length, 0);
  resolve();
  await until("they are made", () => state.pods().length === 2);
});

test("scaling down with changed labels stops some pods and relabels the rest", LIMIT, async (t) => {
  const spec = { scaling: { replicas: 3 } };
  const { state, store } = await start(t, { resources: [aWorkloadEntry({ spec })], nodes: [aNode()] });
  await until("three are made", () => state.pods().length === 3);
  const fewer = aWorkloadEntry({ spec: { scaling: { replicas: 1 } }, labels: { release: "2" } });
  await store.txn([], opsOf({ resources: [fewer] }));
  await until("one is left", () => state.pods().length === 1);
  await until("it has the label", () => state.pods()[0]?.record.labels.release === "2");
});

test("restart_policy: replaces an ended pod after ten seconds", LIMIT, async (t) => {
  const spec = { scaling: { replicas: 1 }, podConfig: { restartPolicy: "Never" } };
  const workload = aWorkloadEntry({ spec });
  const { state, store, clock } = await start(t, { resources: [workload], nodes: [aNode()] });
  await until("it is made", () => state.pods().length === 1);
  const [made] = state.pods();
  assert.ok(made);
  const status = PodStatus.fromPartial({ uid: made.record.uid, phase: PodPhase.FAILED });
  const ended = { ...made, record: { ...made.record, node: "n1" }, status, observedAtMs: clock.nowMs() };
  for (const op of opsOf({ pods: [ended] })) await store.txn([], [op]);
  await until("its time is waited for", () => clock.pending > 0);
  clock.advance(9_999);
  await settled();
  assert.equal(state.pods().length, 1);
  clock.advance(1);
  await until("it is stopped", () => state.pod("shop", made.record.name)?.record.stoppingSince !== undefined);
  await until("another is there", () => state.pods().length === 2);
});

test("removes a deleted workload with the last of its pods", LIMIT, async (t) => {
  const pods = [aPod({ name: "a" }), aPod({ name: "b", node: "" })];
  const { state, store } = await start(t, {
    resources: [aWorkloadEntry({ deleting: true })],
    nodes: [aNode()],
    pods,
  });
  await until("the one without a node is forgotten", () => state.pod("shop", "b") === undefined);
  await until("the other is stopping", () => state.pod("shop", "a")?.record.stoppingSince !== undefined);
  assert.equal(state.resources().length, 1);
  await store.txn([], [{ type: "delete", key: "pods/shop/a" }]);
  await until("the record is gone", () => state.resources().length === 0);
});

test(
  "restarts the placement deadline of unplaced pods when a placed pod of their workload was removed",
  LIMIT,
  async (t) => {
    const spec = { scaling: { replicas: 3 } };
    const hash = aWorkloadEntry({ spec }).applied?.templateHash ?? "";
    const pods = [
      aPod({ name: "placed", hash }),
      aPod({ name: "waits", hash, node: "" }),
      aPod({ name: "other", workload: "api", hash, node: "" }),
      aPod({ name: "stopped", hash, node: "", stopping: true }),
    ];
    const restarted: string[] = [];
    const { store, state } = await start(
      t,
      { resources: [aWorkloadEntry({ spec })], nodes: [aNode()], pods },
      undefined,
      (uid) => restarted.push(uid),
    );
    await until("the pod that was never placed is removed", () => state.pod("shop", "stopped") === undefined);
    assert.equal(restarted.length, 0, "it has left no room");
    const { revision } = await store.txn([], [{ type: "delete", key: "pods/shop/placed" }]);
    await state.reached(revision);
    assert.ok(restarted.includes("uid-waits"));
    assert.ok(!restarted.includes("uid-other"));
  },
);

test("doesn't evaluate a complete workload for each change of a pod's readiness", LIMIT, async (t) => {
  let evaluations = 0;
  const prefetcher = { setRequest: () => void evaluations++, imagesOn: () => ({ type: "present" }) as const };
  const { state, store, clock } = await start(
    t,
    { resources: [aWorkloadEntry({ spec: { scaling: { replicas: 1 } } })], nodes: [aNode()] },
    undefined,
    () => {},
    prefetcher,
  );
  await until("it is made", () => state.pods().length === 1);
  const made = (): PodEntry => state.pods()[0] ?? assert.fail("the pod is gone");
  const placed = { ...made().record, node: "n1" };
  await store.txn([], opsOf({ pods: [{ ...made(), record: placed }] }));
  const report = async (status: PodFields["status"]): Promise<void> => {
    const { uid } = made().record;
    const entry = {
      ...made(),
      status: PodStatus.fromPartial({ uid, ...status }),
      observedAtMs: clock.nowMs(),
    };
    for (const op of opsOf({ pods: [entry] })) {
      if (op.type === "put" && op.key.startsWith("pods/")) continue;
      const { revision } = await store.txn([], [op]);
      await state.reached(revision);
    }
    await settled();
  };
  await report({ phase: PodPhase.RUNNING, ready: true });
  await until("its rollout has succeeded", () => {
    clock.advance(100);
    const of = state.workloadStatuses.get("workload-statuses/shop/container_service/web")?.record.status;
    return of?.$case === "containerService" && of.value.attempt?.state === AttemptState.SUCCEEDED;
  });
  await settled();
  const before = evaluations;
  await report({ phase: PodPhase.RUNNING, ready: false });
  await report({ phase: PodPhase.RUNNING, ready: true });
  assert.equal(evaluations, before);
  await report({ phase: PodPhase.FAILED, reason: "Evicted" });
  assert.ok(evaluations > before);
  await until("it is replaced", () => state.pods().length === 2);
});

async function start(
  t: TestContext,
  contents: Contents,
  started?: Promise<void>,
  restart: (uid: string) => void = () => {},
  prefetcher?: WorkloadControllerOptions["prefetcher"],
) {
  const view = await aView(t, contents);
  let names = 0;
  const controller = new WorkloadController({
    ...view,
    started,
    log: pino({ level: "silent" }),
    steps: { report: () => {} },
    randomName: (length) => `${names++}`.padStart(length, "x"),
    pickVictims: (pods, count) => pods.slice(0, count),
    unschedulable: { get: () => undefined, restart },
    events: { record: () => {} },
    limits: { deadlineMs: 600_000, placementMs: 20_000, stableMs: 0 },
    prefetcher,
  });
  t.after(() => controller.close());
  return view;
}

/**
 * Returns a function that lets time pass for the pause between evaluations of a workload with many pods, and reports
 * whether the condition holds.
 */
function rested(clock: VirtualClock, holds: () => boolean): () => boolean {
  return () => {
    clock.advance(yieldMsOf(1_000));
    return holds();
  };
}
