import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodSpec } from "../types.ts";
import { ClassKeys } from "./pod-class.ts";

const SHARED: PodSpec = {
  namespace: "shop",
  name: "web-1",
  containers: [{ requests: { cpu: "1" } }],
  images: ["web:v1"],
};

/** Changes that each make another class, although the pod shares its lists with the others. */
const OTHERS: Readonly<Record<string, Partial<PodSpec>>> = {
  namespace: { namespace: "other" },
  labels: { labels: { app: "web" } },
  workload: { workload: "shop/container_service/web" },
  revision: { revision: "2" },
  priority: { priority: 5 },
  preemption: { preemptionPolicy: "Never" },
  "init containers": { initContainers: [{ requests: { cpu: "4" } }] },
  "more containers": { containers: [...SHARED.containers, {}] },
  "no images": { images: [] },
  "other images": { images: ["web:v2"] },
  "node selector": { nodeSelector: { disk: "ssd" } },
  tolerations: { tolerations: [{ key: "a", operator: "Exists" }] },
  "node affinity": { nodeAffinity: { required: [{ matchFields: [] }] } },
  "pod affinity": { podAffinity: { required: [] } },
  "pod anti-affinity": { podAntiAffinity: { required: [] } },
  "topology spread": {
    topologySpread: [{ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule" }],
  },
  "nodes of claims": { claimNodes: ["a"] },
  "runtime class": { runtimeClass: "kata" },
};

test("distinguishes pods with shared lists by each of their other fields, whatever came before", () => {
  const pods = [SHARED, ...Object.values(OTHERS).map((change): PodSpec => ({ ...SHARED, ...change }))];
  const keys = new ClassKeys();
  const first = pods.map((pod) => keys.of(pod));
  assert.equal(new Set(first).size, pods.length);
  assert.deepEqual(
    pods.toReversed().map((pod) => keys.of(pod)),
    first.toReversed(),
  );
  assert.deepEqual(
    pods.map((pod) => new ClassKeys().of(structuredClone(pod))),
    first,
    "equal pods have equal keys, even without shared lists",
  );
});

test("does not distinguish replicas", () => {
  const keys = new ClassKeys();
  assert.equal(keys.of(SHARED), keys.of({ ...SHARED, name: "web-2" }));
});
