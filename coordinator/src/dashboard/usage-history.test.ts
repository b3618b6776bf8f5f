import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { PodMetricsSample } from "@forage/proto/forage/agent/v1/agent";
import { aNode, aPod } from "../../test/support/entries.ts";
import { HandFedState } from "../../test/support/hand-fed-state.ts";
import { PodMetrics } from "../metrics/pod-metrics.ts";
import type { PresentView, UsageSeries } from "./history-view.ts";
import { UsageHistory } from "./usage-history.ts";

const INTERVAL_MS = 60_000;
const MAX_SAMPLES = 240;
const BYTES_PER_RING = 2 * 4 * MAX_SAMPLES;
const GIBIBYTE = 1024 ** 3;

function aHistory(limits: { readonly maxNodes?: number; readonly maxPods?: number } = {}) {
  const clock = new VirtualClock({ startMs: 1_000_000 });
  const fed = new HandFedState({ nodes: [aNode()], pods: [aPod()] });
  const usage = new PodMetrics({ clock, lifeMs: 10 * INTERVAL_MS });
  const measure = (name: string, milli?: number, memoryBytes = GIBIBYTE): void =>
    usage.record(
      PodMetricsSample.fromPartial({
        podUid: `uid-${name}`,
        memoryBytes: BigInt(memoryBytes),
        cpuNanoCores: milli === undefined ? undefined : BigInt(milli) * 1_000_000n,
      }),
    );
  const setNode = (name: string, cpuMilli: number, ready = true): void =>
    fed.state.setNodeHealth(
      name,
      { ready, message: "", lastSeenMs: 1, usage: { cpuMilli, memoryBytes: GIBIBYTE } },
      false,
    );
  return {
    clock,
    fed,
    measure,
    setNode,
    history: new UsageHistory({ state: fed.state, clock, usage, ...limits }),
  };
}

const count = ({ series }: PresentView<UsageSeries>): number => series.cpuMilli.length;

test("samples nodes and pods once a minute, and marks times without a value", () => {
  const { clock, fed, measure, setNode, history } = aHistory();
  assert.equal(count(history.node("n1")), 0);
  setNode("n1", 500);
  measure("web-1");
  clock.advance(INTERVAL_MS);
  measure("web-1", 250);
  setNode("n1", 700, false);
  clock.advance(INTERVAL_MS);
  setNode("n1", 900);
  clock.advance(INTERVAL_MS);
  assert.deepEqual(history.node("n1"), {
    startMs: clock.nowMs() - 2 * INTERVAL_MS,
    intervalMs: INTERVAL_MS,
    series: { cpuMilli: [500, null, 900], memoryBytes: [GIBIBYTE, null, GIBIBYTE] },
    nowMs: clock.nowMs(),
    now: { cpuMilli: 900, memoryBytes: GIBIBYTE },
  });
  assert.deepEqual(
    history.pod("shop", "web-1").series,
    { cpuMilli: [null, null, 250], memoryBytes: [GIBIBYTE, null, GIBIBYTE] },
    "a pod has no value while its node is away",
  );
  assert.equal(count(history.pod("other", "web-1")), 0);
  fed.remove(aPod().key);
  clock.advance(INTERVAL_MS);
  assert.equal(history.bytes, BYTES_PER_RING, "only the node is left");
  history.close();
  assert.equal(clock.pending, 0);
});

test("returns the present values before the first sample, and omits unknown ones", () => {
  const { clock, measure, setNode, history } = aHistory();
  const unknown = { cpuMilli: null, memoryBytes: null };
  assert.deepEqual(history.node("n1").now, unknown);
  assert.deepEqual(history.node("gone").now, unknown);
  assert.deepEqual(history.pod("shop", "gone").now, unknown);
  setNode("n1", 500);
  measure("web-1");
  clock.advance(1);
  const pod = history.pod("shop", "web-1");
  assert.deepEqual(pod.now, { cpuMilli: null, memoryBytes: GIBIBYTE });
  assert.deepEqual([count(pod), pod.nowMs], [0, clock.nowMs()]);
  assert.deepEqual(history.node("n1").now, { cpuMilli: 500, memoryBytes: GIBIBYTE });
  history.close();
});

test("keeps four hours in memory of a fixed size, oldest first", () => {
  const { clock, setNode, history } = aHistory();
  for (let milli = 0; milli <= MAX_SAMPLES; milli++) {
    setNode("n1", milli);
    clock.advance(INTERVAL_MS);
  }
  const { cpuMilli } = history.node("n1").series;
  assert.deepEqual([cpuMilli.length, cpuMilli[0], cpuMilli.at(-1)], [MAX_SAMPLES, 1, MAX_SAMPLES]);
  assert.equal(history.bytes, BYTES_PER_RING);
  history.close();
});

test("limits the number of graphs, and reuses the slot of a removed one", () => {
  const { clock, fed, measure, setNode, history } = aHistory({ maxNodes: 1, maxPods: 2 });
  fed.put({
    nodes: [aNode({ name: "n2" })],
    pods: [aPod({ name: "web-2" }), aPod({ name: "web-3" }), aPod({ name: "web-4" })],
  });
  for (const name of ["n1", "n2"]) setNode(name, 1);
  for (const name of ["web-1", "web-2", "web-3"]) measure(name, 1);
  clock.advance(INTERVAL_MS);
  assert.equal(history.bytes, 3 * BYTES_PER_RING);
  assert.equal(count(history.node("n2")), 0);
  assert.equal(count(history.pod("shop", "web-3")), 0);
  fed.remove(aPod().key);
  clock.advance(INTERVAL_MS);
  assert.equal(history.bytes, 3 * BYTES_PER_RING);
  assert.equal(count(history.pod("shop", "web-3")), 1);
  assert.equal(count(history.pod("shop", "web-4")), 0, "it was never measured");
  history.close();
});
