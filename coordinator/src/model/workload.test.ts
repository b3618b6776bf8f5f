import assert from "node:assert/strict";
import { test } from "node:test";
import { aPod, aServiceEntry, aWorkloadEntry } from "../../test/support/entries.ts";
import { podSpecOf, workloadOf } from "./workload.ts";

const hashOf = (fields: Parameters<typeof aWorkloadEntry>[0]) =>
  aWorkloadEntry(fields).workload?.templateHash;

test("a container service is a workload, a service isn't", () => {
  const { workload } = aWorkloadEntry({ name: "web", labels: { a: "1" } });
  assert.partialDeepStrictEqual(workload, {
    namespace: "shop",
    kind: "container_service",
    name: "web",
    replicas: 2,
  });
  assert.equal(workloadOf(aServiceEntry().record), undefined);
});

test("who says nothing of scaling wants one replica, who says 0 none", () => {
  assert.equal(aWorkloadEntry({ spec: { scaling: undefined } }).workload?.replicas, 1);
  assert.equal(aWorkloadEntry({ spec: { scaling: { replicas: 0 } } }).workload?.replicas, 0);
});

test("pods carry the request's labels and those of the pod template, which come first", () => {
  const { workload } = aWorkloadEntry({
    labels: { a: "request", b: "request" },
    spec: { podConfig: { labels: { b: "pod" } } },
  });
  assert.deepEqual(workload?.labels, { a: "request", b: "pod" });
});

test("what pods are made of makes a new revision, what is about them doesn't", () => {
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

test("the scheduler hears what a pod asks for", () => {
  const pod = aPod({ labels: { app: "web" } });
  const resources = {
    requests: { cpu: "1", memory: "", ephemeralStorage: "1Gi", extended: { "a.example/gpu": "1" } },
    limits: { cpu: "", memory: "64Mi", ephemeralStorage: "", extended: {} },
  };
  const { template } = pod.record;
  assert.ok(template?.container);
  template.container.resources = resources;
  template.sidecars = [{ ...template.container, name: "side", image: "side:v1", resources: undefined }];
  assert.deepEqual(podSpecOf(pod.record), {
    name: "web-1",
    namespace: "shop",
    labels: { app: "web" },
    containers: [
      {
        requests: { cpu: "1", "ephemeral-storage": "1Gi", "a.example/gpu": "1" },
        limits: { memory: "64Mi" },
      },
      { requests: {}, limits: {} },
    ],
    workload: "shop/container_service/web",
    revision: "v1",
    images: ["app:v1", "side:v1"],
  });
});
