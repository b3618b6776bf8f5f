import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { PodMetricsSample } from "@forage/proto/forage/agent/v1/agent";
import { aNode, aPod, aWorkloadEntry } from "../../test/support/entries.ts";
import { until } from "../../test/support/until.ts";
import { aView, opsOf } from "../../test/support/view.ts";
import { MetricsCollector } from "./metrics-collector.ts";

const LIMIT = { timeout: 180_000 };
const QUEUE = { name: "queue", targetType: "AverageValue", targetValue: "10" };
const scaled = (policy: object, specHash = "1") =>
  aWorkloadEntry({ specHash, spec: { scaling: { autoscaling: { maxReplicas: 5, ...policy } } } });
const sampleOf = (podUid: string) => ({ pods: [PodMetricsSample.fromPartial({ podUid, memoryBytes: 7n })] });

async function aDesk(
  t: TestContext,
  workload = scaled({ targetCpuUtilizationPercent: 50 }),
  usageOfAllPods = false,
) {
  const pods = [
    aPod({ name: "a" }),
    aPod({ name: "b", node: "n2" }),
    aPod({ name: "plain", workload: "other" }),
    aPod({ name: "stopping", stopping: true }),
  ];
  const view = await aView(t, { resources: [workload], pods, nodes: [aNode(), aNode({ name: "n2" })] });
  const collector = new MetricsCollector({ ...view, intervalMs: 15_000, usageOfAllPods });
  t.after(() => collector.close());
  return { ...view, collector };
}

const asked = (collector: MetricsCollector, node: string) =>
  collector.requestsFor(node)?.pods.map(({ podUid, usage, scrape }) => [podUid, usage, scrape?.names]);

test("requests from each node only the metrics of its autoscaled pods", LIMIT, async (t) => {
  const { collector } = await aDesk(t);
  assert.deepEqual(asked(collector, "n1"), [["uid-a", true, undefined]]);
  assert.deepEqual(asked(collector, "n2"), [["uid-b", true, undefined]]);
  assert.equal(collector.requestsFor("n3"), undefined);
});

test("does not scrape pods without a metrics annotation", LIMIT, async (t) => {
  const { collector } = await aDesk(t, scaled({ customMetrics: [QUEUE] }));
  assert.equal(collector.requestsFor("n1"), undefined);
});

test("accepts only requested values, and only from the pod's node", LIMIT, async (t) => {
  const { collector, store, clock } = await aDesk(t);
  for (const [node, uid] of [
    ["n2", "uid-a"],
    ["n1", "uid-plain"],
    ["n1", "unknown"],
  ] as const)
    collector.receive(node, sampleOf(uid));
  assert.equal(collector.pods.size, 0);
  collector.receive("n1", sampleOf("uid-a"));
  assert.equal(collector.pods.get("uid-a")?.memoryBytes, 7);
  clock.advance(52_499);
  assert.ok(collector.pods.get("uid-a"));
  clock.advance(1);
  assert.equal(collector.pods.get("uid-a"), undefined, "three samples were missed");
  await store.txn([], [{ type: "delete", key: "pods/shop/a" }]);
  await until("it is forgotten with its pod", () => collector.pods.size === 0);
});

test("requests the usage of all pods once, and keeps it until it is outdated", LIMIT, async (t) => {
  const { collector, store, clock } = await aDesk(t, scaled({}), true);
  const outbox = collector.sessionOf("n1");
  assert.deepEqual(outbox.due(), { pods: [], intervalMs: 15_000, usageOfAllPods: true });
  collector.receive("n1", sampleOf("uid-plain"));
  collector.receive("n2", sampleOf("uid-a"));
  assert.deepEqual([collector.usage.size, collector.pods.size], [1, 0], "n2 doesn't have the pod a");
  clock.advance(97_499);
  assert.equal(collector.usage.get("uid-plain")?.memoryBytes, 7, "unchanged samples are left out");
  clock.advance(1);
  assert.equal(collector.usage.get("uid-plain"), undefined);
  await store.txn([], [{ type: "delete", key: "pods/shop/plain" }]);
  await until("it is forgotten with its pod", () => collector.usage.size === 0);
  assert.equal(outbox.due(), undefined, "pods that come and go change nothing");
});

test("sends nodes a changed policy if it needs other metrics", LIMIT, async (t) => {
  const { collector, store } = await aDesk(t);
  const heard: string[] = [];
  const stop = collector.read("n1", () => heard.push("n1"));
  collector.read("n2", () => heard.push("n2"));
  collector.read("n3", () => heard.push("n3"));
  const outbox = collector.sessionOf("n1");
  assert.equal(outbox.due()?.pods.length, 1);
  assert.equal(outbox.due(), undefined, "it was asked already");
  await store.txn([], opsOf({ resources: [scaled({ targetCpuUtilizationPercent: 70 }, "2")] }));
  await store.txn([], opsOf({ resources: [scaled({ customMetrics: [QUEUE] }, "3")] }));
  await until("both nodes have the request", () => heard.length === 2);
  assert.deepEqual(heard.sort(), ["n1", "n2"]);
  assert.deepEqual(outbox.due(), { pods: [], intervalMs: 0, usageOfAllPods: false });
  assert.equal(outbox.due(), undefined);
  stop();
  await store.txn([], opsOf({ resources: [scaled({ targetMemoryUtilizationPercent: 5 }, "4")] }));
  await until("the other node has the request", () => heard.length === 3);
  assert.equal(heard[2], "n2");
});
