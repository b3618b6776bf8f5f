import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { aNode, aPod, aWorkloadEntry } from "../../test/support/entries.ts";
import { HandFedState } from "../../test/support/hand-fed-state.ts";
import type { Contents } from "../../test/support/view.ts";
import { History, MAX_SAMPLES, MAX_SCALED_WORKLOADS } from "./history.ts";

const FIRST_MS = 1_000;
const INTERVAL_MS = 30_000;

function aHistory(contents: Contents) {
  const clock = new VirtualClock({ startMs: 1_000_000 });
  const fed = new HandFedState(contents);
  const desired = new Map<string, number>();
  const statusOf = (_: string, name: string) => {
    const desiredReplicas = desired.get(name);
    return desiredReplicas === undefined ? undefined : { currentReplicas: 1, desiredReplicas };
  };
  return { clock, fed, desired, history: new History({ state: fed.state, clock, autoscale: { statusOf } }) };
}

test("keeps the newest samples up to its limit, oldest first", () => {
  const { clock, fed, history } = aHistory({ nodes: [aNode()] });
  assert.deepEqual(history.fleet().series.pods, []);
  clock.advance(FIRST_MS);
  fed.put({ pods: [aPod({ status: { ready: true, containers: [{ name: "main", restartCount: 3 }] } })] });
  clock.advance(INTERVAL_MS);
  const { startMs, series } = history.fleet();
  assert.equal(startMs, clock.nowMs() - INTERVAL_MS);
  const { pods, podsReady, restarts, nodesReady } = series;
  assert.deepEqual(
    [pods, podsReady, restarts, nodesReady],
    [
      [0, 1],
      [0, 1],
      [null, 3],
      [1, 1],
    ],
  );
  for (let count = 0; count < MAX_SAMPLES - 2; count++) clock.advance(INTERVAL_MS);
  fed.put({ pods: [aPod({ name: "web-2" })] });
  clock.advance(INTERVAL_MS);
  const full = history.fleet();
  assert.equal(full.series.pods.length, MAX_SAMPLES);
  assert.deepEqual([full.series.pods[0], full.series.pods.at(-1)], [1, 2], "the oldest sample made room");
  assert.equal(full.startMs, clock.nowMs() - (MAX_SAMPLES - 1) * INTERVAL_MS);
  history.close();
  assert.equal(clock.pending, 0);
});

test("does not count restarts again after a report that lacked them", () => {
  const { clock, fed, history } = aHistory({});
  const report = (...counts: readonly number[]): void => {
    const containers = counts.map((restartCount, at) => ({ name: `c${at}`, restartCount }));
    fed.put({ pods: [aPod({ status: { ready: true, containers } })] });
    clock.advance(INTERVAL_MS);
  };
  clock.advance(FIRST_MS);
  report(3, 4);
  report();
  report(3);
  report(3, 4);
  report(4, 4);
  assert.deepEqual(history.fleet().series.restarts, [null, 7, 0, 0, 0, 1]);
  history.close();
});

test("samples up to a limited number of workloads while they are autoscaled", () => {
  const names = Array.from({ length: MAX_SCALED_WORKLOADS + 1 }, (_, index) => `w${1_000 + index}`);
  const { clock, desired, history } = aHistory({ resources: names.map((name) => aWorkloadEntry({ name })) });
  for (const name of names) desired.set(name, 2);
  clock.advance(FIRST_MS);
  desired.set("w1000", 5);
  clock.advance(INTERVAL_MS);
  assert.deepEqual(history.scaling("shop", "w1000").series, { current: [1, 1], desired: [2, 5] });
  const none = { current: [], desired: [] };
  assert.deepEqual(history.scaling("shop", names.at(-1) ?? "").series, none);
  desired.delete("w1000");
  clock.advance(INTERVAL_MS);
  assert.deepEqual(history.scaling("shop", "w1000").series, none);
  assert.equal(history.scaling("shop", names.at(-1) ?? "").series.current.length, 1, "its place is free");
  history.close();
});

test("returns no use of nodes until a node has reported it", () => {
  const { clock, fed, history } = aHistory({ nodes: [aNode(), aNode({ name: "n2" })] });
  clock.advance(FIRST_MS);
  const usage = { cpuMilli: 500, memoryBytes: 1_024 };
  fed.state.setNodeHealth("n1", { ready: true, message: "", lastSeenMs: 1, usage }, false);
  clock.advance(INTERVAL_MS);
  const { series, now, nowMs } = history.fleet();
  assert.deepEqual(
    [series.cpuMilli, series.memoryBytes],
    [
      [null, 500],
      [null, 1_024],
    ],
  );
  assert.deepEqual([now.cpuMilli, now.requests, nowMs], [500, null, clock.nowMs()]);
  history.close();
});

test("returns the requests that gateways answer as a rate", () => {
  const { clock, fed, history } = aHistory({ nodes: [aNode()] });
  const answered = (requests: number): void => {
    const health = { ready: true, message: "", lastSeenMs: 1, traffic: { requests, errors: 0 } };
    fed.state.setNodeHealth("n1", health, false);
  };
  answered(600);
  clock.advance(FIRST_MS);
  answered(660);
  clock.advance(INTERVAL_MS);
  assert.deepEqual(history.fleet().series.requests, [null, 2]);
  history.close();
});
