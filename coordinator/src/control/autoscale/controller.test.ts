import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { PodMetricsSample, PodPhase, PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { pino } from "pino";
import { aNode, aPod, aWorkloadEntry } from "../../../test/support/entries.ts";
import { settled, until } from "../../../test/support/until.ts";
import { aView, opsOf } from "../../../test/support/view.ts";
import { MetricsCollector } from "../../metrics/metrics-collector.ts";
import type { EventInput } from "../../model/event.ts";
import { AutoscaleController } from "./controller.ts";

const LIMIT = { timeout: 180_000 };
const INTERVAL_MS = 15_000;
const QUEUE = { customMetrics: [{ name: "queue", targetType: "AverageValue", targetValue: "10" }] };
const CPU = { targetCpuUtilizationPercent: 50 };
const KEY = { namespace: "shop", name: "queue", workload: "", pod: "" };

function aScaled(policy: object, fields: Parameters<typeof aWorkloadEntry>[0] = {}, replicas = 2) {
  const autoscaling = { maxReplicas: 20, scaleDownStabilization: { seconds: 30n }, ...policy };
  return aWorkloadEntry({ spec: { scaling: { replicas, autoscaling } }, ...fields });
}

test("stores a decision with its reason, shows it, and records one event", LIMIT, async (t) => {
  const { evaluate, state, metrics, events, status } = await start(t, [aScaled(QUEUE)]);
  assert.deepEqual(
    [scaleOf(state)?.replicas, scaleOf(state)?.scaledAt],
    [2, undefined],
    "the size to begin with",
  );
  metrics.pushed.put(KEY, 52, 3_600);
  await evaluate();
  assert.equal(scaleOf(state)?.replicas, 6);
  assert.equal(state.resources()[0]?.workload?.replicas, 6, "the view goes by it");
  await evaluate();
  await evaluate();
  assert.deepEqual(
    events.map(({ reason, message, type }) => [reason, message, type]),
    [["ScaledUp", "2 → 6: queue is at 26 a pod, target 10", "Normal"]],
  );
  const { lastScaleReason, currentReplicas, desiredReplicas } = status() ?? {};
  assert.deepEqual([lastScaleReason, currentReplicas, desiredReplicas], [events[0]?.message, 6, 6]);
  metrics.pushed.put(KEY, 7, 3_600);
  await evaluate();
  assert.equal(scaleOf(state)?.replicas, 6, "it waits for as long as was asked");
  await evaluate();
  await evaluate();
  assert.equal(scaleOf(state)?.replicas, 1);
  assert.equal(events.at(-1)?.reason, "ScaledDown");
});

test("compares measured CPU use with the pods' requests", LIMIT, async (t) => {
  const { evaluate, state, metrics } = await start(t, [aScaled(CPU)], ["a", "b"]);
  measure(metrics, "a", 0.15);
  measure(metrics, "b", 0.1);
  await evaluate();
  assert.equal(scaleOf(state)?.replicas, 5, "125 % of 100m");
});

test("ignores outdated samples", LIMIT, async (t) => {
  const { evaluate, state, metrics, clock } = await start(t, [aScaled(CPU)], ["a", "b"]);
  measure(metrics, "a", 0.3);
  measure(metrics, "b", 0.2);
  clock.advance(4 * INTERVAL_MS);
  await evaluate();
  assert.equal(scaleOf(state)?.replicas, 2);
});

test(
  "records one event when a metric has been missing for a minute, and one when it is available again",
  LIMIT,
  async (t) => {
    const { evaluate, metrics, events, state } = await start(t, [aScaled(QUEUE)]);
    for (let index = 0; index < 12; index++) await evaluate();
    assert.deepEqual(
      events.map(({ reason, type }) => [reason, type]),
      [["MetricsMissing", "Warning"]],
    );
    assert.match(events[0]?.message ?? "", /queue: there is no pod to measure/);
    metrics.pushed.put(KEY, 20, 3_600);
    await evaluate();
    await evaluate();
    assert.deepEqual(
      events.slice(1).map(({ reason }) => reason),
      ["MetricsKnown"],
    );
    assert.equal(scaleOf(state)?.replicas, 2);
  },
);

test(
  "evaluates autoscaled workloads only, and removes a record together with its workload",
  LIMIT,
  async (t) => {
    const plain = aWorkloadEntry({ name: "plain" });
    const { state, store, clock, evaluate } = await start(t, [plain, aScaled(QUEUE)]);
    assert.equal(clock.pending, 1);
    assert.deepEqual(
      state.scales.all().map(({ record }) => record.name),
      ["web"],
    );
    await store.txn([], opsOf({ resources: [aWorkloadEntry()] }));
    await until("it is forgotten", () => state.scales.size === 0);
    await evaluate();
    assert.equal(clock.pending, 0);
    assert.equal(state.resources()[1]?.workload?.replicas, 2);
  },
);

test(
  "removes the record of a workload that was deleted while the controller was stopped",
  LIMIT,
  async (t) => {
    const first = await start(t, [aScaled(QUEUE)]);
    await first.controller.close();
    await first.store.txn([], [{ type: "delete", key: "resources/shop/container_service/web" }]);
    await until("it is gone", () => first.state.resources().length === 0);
    assert.equal(first.state.scales.size, 1);
    first.again();
    await until("its record too", () => first.state.scales.size === 0);
  },
);

test("scales down no earlier than one stabilization window after a restart", LIMIT, async (t) => {
  const scene = await start(t, [aScaled(QUEUE, {}, 8)]);
  scene.metrics.pushed.put(KEY, 10, 3_600);
  await scene.evaluate();
  await scene.controller.close();
  scene.again();
  await settled();
  await scene.evaluate();
  assert.equal(scaleOf(scene.state)?.replicas, 8);
  await scene.evaluate();
  assert.equal(scaleOf(scene.state)?.replicas, 1);
});

test("applies changed limits at once", LIMIT, async (t) => {
  const { state, store, evaluate } = await start(t, [aScaled(QUEUE, {}, 8)]);
  await store.txn([], opsOf({ resources: [aScaled({ ...QUEUE, maxReplicas: 3 }, { specHash: "2" })] }));
  await until("three are written down", () => scaleOf(state)?.replicas === 3);
  await store.txn([], opsOf({ resources: [aScaled({ ...QUEUE, maxReplicas: 20 }, { specHash: "3" })] }));
  await evaluate();
  assert.equal(scaleOf(state)?.replicas, 3);
});

test("doesn't scale a workload that is being deleted", LIMIT, async (t) => {
  const { state, evaluate, metrics } = await start(t, [aScaled(QUEUE, { deleting: true })]);
  metrics.pushed.put(KEY, 500, 3_600);
  await evaluate();
  assert.equal(state.scales.size, 0);
});

type View = Awaited<ReturnType<typeof aView>>;

function scaleOf(state: View["state"]) {
  return state.scales.get("scales/shop/web")?.record;
}

function measure(metrics: MetricsCollector, pod: string, cores: number): void {
  const fields = {
    cpuNanoCores: BigInt(cores * 1e9),
    windowMs: 15_000n,
    runningMs: 90_000n,
    readyMs: 90_000n,
  };
  metrics.receive("n1", { pods: [PodMetricsSample.fromPartial({ podUid: `uid-${pod}`, ...fields })] });
}

async function start(
  t: TestContext,
  resources: readonly ReturnType<typeof aScaled>[],
  pods: readonly string[] = [],
) {
  const template = { container: { name: "main", image: "app:v1", resources: { requests: { cpu: "100m" } } } };
  const running = pods.map((name) => {
    const pod = aPod({ name, status: { phase: PodPhase.RUNNING, ready: true } });
    return { ...pod, record: { ...pod.record, template: PodTemplate.fromPartial(template) } };
  });
  const view = await aView(t, { resources, pods: running, nodes: [aNode()] });
  const { state, clock } = view;
  const metrics = new MetricsCollector({ state, clock, intervalMs: INTERVAL_MS });
  const events: EventInput[] = [];
  const log = pino({ level: "silent" });
  const make = () =>
    new AutoscaleController({
      ...view,
      log,
      metrics,
      events: { record: (event) => void events.push(event) },
    });
  const scene = {
    ...view,
    metrics,
    events,
    controller: make(),
    again: () => {
      scene.controller = make();
    },
    /** Waits for the next evaluation and its effects. */
    evaluate: async () => {
      clock.advance(INTERVAL_MS);
      for (let turn = 0; turn < 20; turn++) await settled();
    },
    status: () => scene.controller.statusOf("shop", "web"),
  };
  t.after(async () => {
    await scene.controller.close();
    metrics.close();
  });
  for (let turn = 0; turn < 20; turn++) await settled();
  return scene;
}
