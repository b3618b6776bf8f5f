import assert from "node:assert/strict";
import { test } from "node:test";
import { type CounterReading, metricValues } from "./counter-rates.ts";
import { type CpuReading, cpuRate } from "./cpu-rate.ts";

const reading = (atMs: number, nanos: Record<string, number>): CpuReading => {
  return { atMs, nanos: new Map(Object.entries(nanos)) };
};
const old = () => Number.POSITIVE_INFINITY;

test("cpu: the total usage of the containers per elapsed time", () => {
  const before = reading(0, { a: 1e9, b: 5e9 });
  const rate = cpuRate(before, reading(10_000, { a: 6e9, b: 5.5e9 }), old);
  assert.deepEqual(rate, { nanoCores: 550_000_000, windowMs: 10_000 });
});

test("cpu: unknown at first, without elapsed time, and after a counter has decreased", () => {
  assert.equal(cpuRate(undefined, reading(0, { a: 1 }), old), undefined);
  assert.equal(cpuRate(reading(5, { a: 1 }), reading(5, { a: 2 }), old), undefined);
  assert.equal(cpuRate(reading(0, { a: 2 }), reading(5, { a: 1 }), old), undefined);
});

test("cpu: a container started since the last sample counts from its start, and an older one has no rate yet", () => {
  const before = reading(0, { a: 1e9 });
  const after = reading(10_000, { a: 2e9, b: 3e9 });
  assert.equal(cpuRate(before, after, () => 9_000)?.nanoCores, 400_000_000);
  assert.equal(
    cpuRate(before, after, (id) => (id === "b" ? 11_000 : 99_000)),
    undefined,
  );
  assert.equal(cpuRate(before, reading(10_000, { c: 5e9 }), () => 1_000)?.nanoCores, 500_000_000);
});

test("metrics: gauges are unchanged, and counters become growth per second", () => {
  const names = ["queue", "requests_total", "gone", "odd"];
  const found = (requests: number) =>
    new Map([
      ["queue", { type: "gauge", sum: 7 }],
      ["requests_total", { type: "counter", sum: requests }],
      ["odd", { type: "unusable", why: "is a summary" }],
    ] as const);
  const first = metricValues(names, found(100), undefined, 1_000);
  assert.deepEqual(first.values, { queue: 7 });
  assert.equal(first.problem, "the pod does not report gone; odd is a summary");
  const second = metricValues(names, found(400), first.counters, 16_000);
  assert.deepEqual(second.values, { queue: 7, requests_total: 20 });
  const again = metricValues(names, found(30), second.counters, 31_000);
  assert.deepEqual(again.values, { queue: 7 }, "the counter has restarted");
  assert.deepEqual(metricValues(names, found(60), again.counters, 46_000).values, {
    queue: 7,
    requests_total: 2,
  });
});

test("metrics: two readings at the same time give no rate", () => {
  const before: CounterReading = { atMs: 5, sums: new Map([["a", 1]]) };
  const found = new Map([["a", { type: "counter", sum: 2 }]] as const);
  assert.deepEqual(metricValues(["a"], found, before, 5).values, {});
});
