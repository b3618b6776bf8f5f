import assert from "node:assert/strict";
import { test } from "node:test";
import { randomOf } from "@forage/common/random";
import { aJobEntry, aServiceEntry, aWorkloadEntry } from "../../../test/support/entries.ts";
import { randomResource } from "../../../test/support/forest/random-resource.ts";
import { aContainerService, aRequest, aService } from "../../../test/support/requests.ts";
import type { ResourceEntry } from "../../state/entries.ts";
import { kindOf, planBundle } from "./bundle.ts";

const LABELS = { app: "shop" };

test("creates, updates or keeps resources, in the request's order", () => {
  const web = aContainerService("web");
  const [known] = planBundle(aRequest("a1", [web], LABELS), []);
  const stored = [
    aWorkloadEntry({ name: "web", labels: LABELS, specHash: known?.specHash ?? "" }),
    aServiceEntry({ name: "web", labels: LABELS, specHash: "old" }),
  ];
  const request = aRequest("a2", [aService("web", "web"), aContainerService("new"), web], LABELS);
  assert.deepEqual(actions(planBundle(request, stored)), [
    "service/web update",
    "container_service/new create",
    "container_service/web unchanged",
  ]);
});

test("removes resources with all of the labels that aren't in the request, after all other changes", () => {
  const stored = [
    aServiceEntry({ name: "gone", labels: { ...LABELS, tier: "front" } }),
    aServiceEntry({ name: "partly", labels: { tier: "front" } }),
    aServiceEntry({ name: "other", labels: { app: "other" } }),
    aServiceEntry({ name: "bare" }),
  ];
  const request = aRequest("a1", [aService("web", "web")], LABELS);
  assert.deepEqual(actions(planBundle(request, stored)), ["service/web create", "service/gone remove"]);
  assert.deepEqual(actions(planBundle(aRequest("a1", [], LABELS), stored)), ["service/gone remove"]);
  assert.deepEqual(actions(planBundle(request, stored, { keepOthers: true })), ["service/web create"]);
});

test("keeps the runs of a cron job, which have its labels", () => {
  const run = aJobEntry({ name: "nightly-1", labels: LABELS });
  run.record.owner = { kind: "cron_job", name: "nightly", scheduledFor: undefined };
  const byHand = aJobEntry({ name: "once", labels: LABELS });
  assert.deepEqual(actions(planBundle(aRequest("a1", [], LABELS), [run, byHand])), ["job/once remove"]);
});

test("removes nothing without labels", () => {
  const stored = [aServiceEntry({ name: "bare" }), aServiceEntry({ name: "other", labels: LABELS })];
  assert.deepEqual(actions(planBundle(aRequest("a1", [aService("web", "web")]), stored)), [
    "service/web create",
  ]);
});

test("tells apart resources of different kinds with the same name", () => {
  const stored = [aWorkloadEntry({ name: "web", labels: LABELS })];
  const request = aRequest("a1", [aService("web", "web")], LABELS);
  assert.deepEqual(actions(planBundle(request, stored)), [
    "service/web create",
    "container_service/web remove",
  ]);
});

test("updates a resource if its labels changed or it was being removed", () => {
  const web = aService("web", "web");
  const [known] = planBundle(aRequest("a1", [web], LABELS), []);
  const same = (fields: object): ResourceEntry[] => [
    aServiceEntry({ name: "web", labels: LABELS, specHash: known?.specHash ?? "", ...fields }),
  ];
  assert.deepEqual(actions(planBundle(aRequest("a2", [web], LABELS), same({}))), ["service/web unchanged"]);
  assert.deepEqual(actions(planBundle(aRequest("a2", [web], { app: "x" }), same({}))), [
    "service/web update",
  ]);
  assert.deepEqual(actions(planBundle(aRequest("a2", [web], LABELS), same({ deleting: true }))), [
    "service/web update",
  ]);
});

test("plans every kind of resource", () => {
  const kinds = new Set<string>();
  for (let seed = 0; seed < 50; seed++) {
    const resource = randomResource(randomOf(seed), "x");
    const [item] = planBundle(aRequest("a1", [resource]), []);
    assert.equal(item?.key, `resources/shop/${kindOf(resource)}/x`);
    kinds.add(kindOf(resource));
  }
  assert.deepEqual([...kinds].sort(), ["container_service", "cron_job", "job", "route", "service"]);
});

function actions(items: ReturnType<typeof planBundle>): string[] {
  return items.map(({ kind, name, action }) => `${kind}/${name} ${action}`);
}
