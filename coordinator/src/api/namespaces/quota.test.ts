import assert from "node:assert/strict";
import { test } from "node:test";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import type { BundleItem } from "../forage/bundle.ts";
import { Field } from "../validate/field.ts";
import { Findings } from "../validate/findings.ts";
import { checkApplyQuota } from "./quota.ts";
import { costOf, NOTHING, type Usage } from "./usage.ts";

function aService(name: string, replicas: number, maxSurge = "", cpu = "0"): ForageResource {
  const container = { name: "main", resources: { requests: { cpu } } };
  const updateStrategy = { type: "RollingUpdate", rollingUpdate: { maxSurge } };
  const value = { container, scaling: { replicas }, updateStrategy };
  return ForageResource.fromPartial({ name, spec: { $case: "containerService", value } } as object);
}

/** Returns an item that changes the number of replicas of a service. */
function scaled(name: string, before: number, after: number): BundleItem {
  const action = after === 0 ? "remove" : before === 0 ? "create" : "update";
  return {
    ...{ key: name, name, kind: "container_service", specHash: "", action },
    resource: after === 0 ? undefined : aService(name, after),
    existing:
      before === 0 ? undefined : ({ record: aService(name, before) } as unknown as BundleItem["existing"]),
  };
}

/** Returns the fields of an apply that exceed a quota of 10 pods. */
function exceeded(usedPods: number, ...items: readonly BundleItem[]): string[] {
  return exceededWith({ used: usedPods }, ...items);
}

function exceededWith(
  pods: { readonly used: number; readonly leaving?: number; readonly total?: number },
  ...items: readonly BundleItem[]
): string[] {
  const findings = new Findings();
  const of = (count: number) => ({ ...NOTHING, pods: count });
  const usage = {
    of: (record: unknown) => costOf(record as ForageResource),
    withContent: (_: unknown, content: ForageResource) => costOf(content),
    ofNamespace: () => of(pods.used),
    leaving: () => of(pods.leaving ?? 0),
    total: () => of(pods.total ?? pods.used),
  } as unknown as Usage;
  const check = { namespace: "shop", limits: { pods: "10", cpu: "10" }, usage };
  checkApplyQuota(items, new Field(findings, "resources"), check);
  return findings.invalidFields.map(({ field }) => field);
}

const REPLICAS = "resources[0].container_service.scaling.replicas";

test("allows usage up to the quota", () => {
  assert.deepEqual(exceeded(7, scaled("a", 0, 3)), []);
  assert.deepEqual(exceeded(7, scaled("a", 0, 4)), [REPLICAS]);
  assert.deepEqual(exceeded(7, scaled("a", 3, 7)), [REPLICAS]);
});

test("allows a namespace above a lowered quota to scale down and to replace services, but not to scale up", () => {
  assert.deepEqual(exceeded(20, scaled("a", 9, 8)), []);
  assert.deepEqual(exceeded(20, scaled("a", 9, 0)), []);
  assert.deepEqual(exceeded(20, scaled("a", 0, 3), scaled("b", 3, 0)), []);
  assert.deepEqual(exceeded(20, scaled("a", 0, 4), scaled("b", 3, 0)), [REPLICAS]);
});

const SURGE = "resources[0].container_service.update_strategy.rolling_update.max_surge";
for (const [what, maxSurge, fields] of [
  ["the default surge doesn't count", "", []],
  ["no surge doesn't count", "0", []],
  ["a quarter of the replicas, rounded up, doesn't count", "2", []],
  ["a surge beyond a quarter counts", "4", []],
  ["a surge beyond the quota is rejected at its field", "5", [SURGE]],
  ["a surge as a percentage counts", "100%", [SURGE]],
  ["the largest surge is rejected", "2147483647", [SURGE]],
] as const)
  test(`8 of 10 pods: ${what}`, () => {
    const created = { ...scaled("a", 0, 8), resource: aService("a", 8, maxSurge) };
    assert.deepEqual(exceeded(0, created), fields);
  });

test("counts the requests of the pods of a surge", () => {
  const created = (maxSurge: string) => ({ ...scaled("a", 0, 2), resource: aService("a", 2, maxSurge, "3") });
  assert.deepEqual(exceeded(0, created("2")), []);
  assert.deepEqual(exceeded(0, created("3")), [SURGE]);
});

test("rejects replicas that exceed the quota without a surge at their field", () => {
  assert.deepEqual(exceeded(0, { ...scaled("a", 0, 11), resource: aService("a", 11, "4") }), [REPLICAS]);
});

test("reports the service that adds the most pods", () => {
  const fields = exceeded(8, scaled("a", 0, 1), scaled("b", 0, 2));
  assert.deepEqual(fields, ["resources[1].container_service.scaling.replicas"]);
});

test("counts stopping pods", () => {
  assert.deepEqual(exceededWith({ used: 20, leaving: 10 }, scaled("a", 0, 5), scaled("b", 5, 0)), [REPLICAS]);
  assert.deepEqual(exceededWith({ used: 20, leaving: 10 }, scaled("a", 5, 4)), []);
  assert.deepEqual(exceededWith({ used: 8, leaving: 5 }, scaled("a", 0, 5), scaled("b", 3, 0)), []);
});

test("limits all namespaces together for every caller", () => {
  assert.deepEqual(exceededWith({ used: 0, total: 199_999 }, scaled("a", 0, 1)), []);
  assert.deepEqual(exceededWith({ used: 0, total: 199_999 }, scaled("a", 0, 2)), [REPLICAS]);
});
