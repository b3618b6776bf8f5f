import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { VirtualClock } from "@forage/common/virtual-clock";
import { PodPhase, PodStatus } from "@forage/proto/forage/agent/v1/agent";
import { PodRecord } from "@forage/proto/forage/store/v1/store";
import { pino } from "pino";
import { aNode, aPod, aWorkloadEntry } from "../../../test/support/entries.ts";
import { settled, until } from "../../../test/support/until.ts";
import { aView, type Contents, opsOf } from "../../../test/support/view.ts";
import { decodeRecord } from "../../model/codec.ts";
import { yieldMsOf } from "../yield-time.ts";
import { WorkloadController } from "./controller.ts";

const LIMIT = { timeout: 120_000 };

test("replicas too long for one transaction are made all the same, once each", LIMIT, async (t) => {
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

test("pods of a revision share one stored template, which goes with the last of them", LIMIT, async (t) => {
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
});

test(
  "a new revision's pods get their own template, and the old one goes with the old pods",
  LIMIT,
  async (t) => {
    const spec = { scaling: { replicas: 2 }, updateStrategy: { type: "Recreate" } };
    const { state, store } = await start(t, { resources: [aWorkloadEntry({ spec })], nodes: [aNode()] });
    await until("two are made", () => state.pods().length === 2);
    const [before] = state.podTemplates.ofWorkload("shop/container_service/web");
    const container = { name: "main", image: "app:v2" };
    await store.txn([], opsOf({ resources: [aWorkloadEntry({ spec: { ...spec, container } })] }));
    const image = () => state.pods().map(({ record }) => record.template?.container?.image);
    await until("they are new", () => image().join() === "app:v2,app:v2");
    await until(
      "one is left",
      () => state.podTemplates.ofWorkload("shop/container_service/web").length === 1,
    );
    assert.notEqual(state.podTemplates.ofWorkload("shop/container_service/web")[0]?.key, before?.key);
  },
);

test("a pod that is rewritten keeps referring to its template", LIMIT, async (t) => {
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

test("makes no pods before the coordinator has started", LIMIT, async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { state } = await start(t, { resources: [aWorkloadEntry()] }, promise);
  await settled();
  assert.equal(state.pods().length, 0);
  resolve();
  await until("they are made", () => state.pods().length === 2);
});

test("scaling down while the labels change stops some and relabels the rest", LIMIT, async (t) => {
  const spec = { scaling: { replicas: 3 } };
  const { state, store } = await start(t, { resources: [aWorkloadEntry({ spec })], nodes: [aNode()] });
  await until("three are made", () => state.pods().length === 3);
  const fewer = aWorkloadEntry({ spec: { scaling: { replicas: 1 } }, labels: { release: "2" } });
  await store.txn([], opsOf({ resources: [fewer] }));
  await until("one is left", () => state.pods().length === 1);
  await until("it has the label", () => state.pods()[0]?.record.labels.release === "2");
});

test("restart_policy: a pod that may end is replaced ten seconds after it has", LIMIT, async (t) => {
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

test("a deleted workload goes with the last of its pods", LIMIT, async (t) => {
  const pods = [aPod({ name: "a" }), aPod({ name: "b", node: "" })];
  const { state, store } = await start(t, {
    resources: [aWorkloadEntry({ deleting: true })],
    nodes: [aNode()],
    pods,
  });
  await until("the one without a node is forgotten", () => state.pod("shop", "b") === undefined);
  await until("the other is stopping", () => state.pod("shop", "a")?.record.stoppingSince !== undefined);
  assert.equal(state.resources().length, 1);
  await store.txn([], [{ kind: "delete", key: "pods/shop/a" }]);
  await until("the record is gone", () => state.resources().length === 0);
});

test(
  "the placement deadline of waiting pods starts over when a placed pod of their workload has gone",
  LIMIT,
  async (t) => {
    const spec = { scaling: { replicas: 3 } };
    const hash = aWorkloadEntry({ spec }).wanted?.templateHash ?? "";
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
    await until(
      "the one that was never placed is forgotten",
      () => state.pod("shop", "stopped") === undefined,
    );
    assert.equal(restarted.length, 0, "it has left no room");
    const { revision } = await store.txn([], [{ kind: "delete", key: "pods/shop/placed" }]);
    await state.reached(revision);
    assert.ok(restarted.includes("uid-waits"));
    assert.ok(!restarted.includes("uid-other"));
  },
);

async function start(
  t: TestContext,
  contents: Contents,
  started?: Promise<void>,
  restart: (uid: string) => void = () => {},
) {
  const view = await aView(t, contents);
  let names = 0;
  const controller = new WorkloadController({
    ...view,
    started,
    log: pino({ level: "silent" }),
    steps: { take: () => {} },
    randomName: (length) => `${names++}`.padStart(length, "x"),
    pickVictims: (pods, count) => pods.slice(0, count),
    unschedulable: { get: () => undefined, restart },
    events: { record: () => {} },
    limits: { deadlineMs: 600_000, placementMs: 20_000, stableMs: 0 },
  });
  t.after(() => controller.close());
  return view;
}

/** Lets the time pass that a workload with many pods rests after each look. */
function rested(clock: VirtualClock, holds: () => boolean): () => boolean {
  return () => {
    clock.advance(yieldMsOf(1_000));
    return holds();
  };
}
