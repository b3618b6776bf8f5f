import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayTraffic, Increases } from "./increases.ts";

test("sums the increases of counters, even when their pods are replaced", () => {
  const restarts = new Increases();
  assert.deepEqual(restarts.update(new Map([["a", 5]])), Number.NaN, "the time before is not known");
  assert.equal(restarts.update(new Map([["a", 7]])), 2);
  assert.equal(
    restarts.update(new Map([["b", 1]])),
    1,
    "the replacement counts from 0, and nothing is taken away",
  );
  assert.equal(restarts.update(new Map([["b", 1]])), 0);
});

test("computes rates from the totals of gateways, and counts decreased totals from 0", () => {
  const traffic = new GatewayTraffic();
  const at = (nowMs: number, totals: Readonly<Record<string, readonly [number, number]>>) => {
    const named = Object.entries(totals).map(
      ([node, [requests, errors]]) => [node, { requests, errors }] as const,
    );
    const { requests, errors } = traffic.update(new Map(named), nowMs);
    return [requests, errors];
  };
  const unknown = [Number.NaN, Number.NaN];
  assert.deepEqual(at(0, {}), unknown, "there is no gateway");
  assert.deepEqual(at(30_000, { n1: [1_000, 10] }), unknown, "its first totals have no time");
  assert.deepEqual(at(60_000, { n1: [1_300, 13] }), [10, 0.1]);
  assert.deepEqual(
    at(90_000, { n1: [1_600, 13], n2: [9_000, 0] }),
    [10, 0],
    "n2 counts from its second totals on",
  );
  assert.deepEqual(at(120_000, { n1: [60, 3], n2: [9_240, 0] }), [10, 0.1], "n1's proxy was restarted");
  assert.deepEqual(at(150_000, { n3: [5, 0] }), unknown);
});
