import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { type MetricName, PushedMetrics } from "./pushed-metrics.ts";

const rps = (fields: Partial<MetricName> = {}): MetricName => {
  return { namespace: "shop", name: "rps", workload: "", pod: "", ...fields };
};

test("returns the newest value for its time to live", () => {
  const clock = new VirtualClock();
  const pushed = new PushedMetrics(clock);
  pushed.put(rps(), 1, 60);
  clock.advance(30_000);
  pushed.put(rps(), 2, 60);
  clock.advance(59_999);
  assert.equal(pushed.get(rps())?.value, 2);
  clock.advance(1);
  assert.equal(pushed.get(rps()), undefined);
  assert.deepEqual(pushed.list(), []);
  assert.equal(pushed.delete(rps()), false, "it had run out");
});

test("keeps values of different objects apart", () => {
  const pushed = new PushedMetrics(new VirtualClock());
  const names = [
    rps(),
    rps({ workload: "web" }),
    rps({ pod: "web" }),
    rps({ namespace: "other" }),
    rps({ name: "q" }),
  ];
  for (const [index, name] of names.entries()) pushed.put(name, index, 60);
  assert.deepEqual(
    names.map((name) => pushed.get(name)?.value),
    [0, 1, 2, 3, 4],
  );
  assert.equal(pushed.list("shop").length, 4);
  assert.equal(pushed.delete(rps({ pod: "web" })), true);
  assert.equal(pushed.list().length, 4);
});

test("holds a thousand values of a namespace, and replaces expired ones", () => {
  const clock = new VirtualClock();
  const pushed = new PushedMetrics(clock);
  for (let index = 0; index < 1_000; index++) pushed.put(rps({ name: `m${index}` }), 1, index === 7 ? 1 : 60);
  assert.throws(() => pushed.put(rps(), 1, 60), { code: "RESOURCE_EXHAUSTED" });
  pushed.put(rps({ name: "m8" }), 2, 60);
  pushed.put(rps({ namespace: "other" }), 1, 60);
  clock.advance(1_000);
  pushed.put(rps(), 1, 60);
  assert.throws(() => pushed.put(rps({ name: "more" }), 1, 60), /namespace "shop" has 1000 pushed values/);
});

test("holds twenty thousand values of all namespaces together", () => {
  const clock = new VirtualClock();
  const pushed = new PushedMetrics(clock);
  for (let index = 0; index < 20_000; index++)
    pushed.put(rps({ namespace: `n${index % 100}`, name: `m${index}` }), 1, 60);
  assert.throws(() => pushed.put(rps(), 1, 60), /the cluster has 20000/);
  clock.advance(60_000);
  pushed.put(rps(), 1, 60);
  assert.equal(pushed.list().length, 1);
});
