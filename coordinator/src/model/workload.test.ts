import assert from "node:assert/strict";
import { test } from "node:test";
import { aServiceEntry, aWorkloadEntry } from "../../test/support/entries.ts";
import { workloadOf } from "./workload.ts";

const hashOf = (fields: Parameters<typeof aWorkloadEntry>[0]) =>
  aWorkloadEntry(fields).workload?.templateHash;

test("workloadOf returns a workload for a container service, but not for a service", () => {
  const { workload } = aWorkloadEntry({ name: "web", labels: { a: "1" } });
  assert.partialDeepStrictEqual(workload, {
    namespace: "shop",
    kind: "container_service",
    name: "web",
    replicas: 2,
  });
  assert.equal(workloadOf(aServiceEntry().record), undefined);
});

test("a missing scaling means one replica, and an explicit 0 none", () => {
  assert.equal(aWorkloadEntry({ spec: { scaling: undefined } }).workload?.replicas, 1);
  assert.equal(aWorkloadEntry({ spec: { scaling: { replicas: 0 } } }).workload?.replicas, 0);
});

test("pods have the labels of the request and of the pod template, which takes precedence", () => {
  const { workload } = aWorkloadEntry({
    labels: { a: "request", b: "request" },
    spec: { podConfig: { labels: { b: "pod" } } },
  });
  assert.deepEqual(workload?.labels, { a: "request", b: "pod" });
});

test("a change of the pod template results in a new hash, and a change of other settings doesn't", () => {
  const base = hashOf({});
  assert.equal(hashOf({ labels: { a: "1" } }), base);
  assert.equal(hashOf({ name: "other", namespace: "other" }), base);
  assert.equal(hashOf({ spec: { scaling: { replicas: 9 } } }), base);
  assert.equal(hashOf({ spec: { updateStrategy: { type: "RollingUpdate" } } }), base);
  for (const spec of [
    { container: { name: "main", image: "app:v2" } },
    { podConfig: { labels: { a: "1" } } },
    { podConfig: { terminationGracePeriodSeconds: 5 } },
    { sidecars: [{ name: "x", image: "y" }] },
    { volumes: [{ name: "v" }] },
  ])
    assert.notEqual(hashOf({ spec }), base, JSON.stringify(spec));
});
