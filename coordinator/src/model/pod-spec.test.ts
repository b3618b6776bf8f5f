import assert from "node:assert/strict";
import { test } from "node:test";
import { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { podRequests } from "@forage/scheduler";
import { aPod } from "../../test/support/entries.ts";
import { podSpecOf } from "./pod-spec.ts";

test("adds up the requests of a pod's containers", () => {
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

test("requests the larger of the largest init container and the sum of the other containers", () => {
  const cpu = (name: string, amount: string) => {
    return { name, image: "app:v1", resources: { requests: { cpu: amount, memory: "1Mi" } } };
  };
  const spec = specOf({
    container: cpu("main", "1"),
    sidecars: [cpu("side", "500m")],
    initContainers: [cpu("a", "2"), cpu("b", "100m")],
  });
  assert.deepEqual(Object.fromEntries(podRequests(spec)), { cpu: 2000, memory: 2 * 1024 * 1024 });
  assert.deepEqual(spec.images, ["app:v1"]);
});

test("requires host ports only in the host's network", () => {
  const container = { name: "main", image: "app:v1", ports: [{ containerPort: 53, protocol: "UDP" }] };
  assert.equal(specOf({ container }).containers[0]?.hostPorts, undefined);
  const { containers } = specOf({ container, podConfig: { hostNetwork: true } });
  assert.deepEqual(containers[0]?.hostPorts, [{ port: 53, protocol: "UDP" }]);
});

test("converts all rules about nodes and other pods", () => {
  const inZone = { key: "zone", operator: "In", values: ["a"] };
  const selector = {
    matchLabels: { app: "web" },
    matchExpressions: [{ ...inZone, operator: "Exists", values: [] }],
  };
  const term = { topologyKey: "zone", namespaces: ["shop"], labelSelector: selector };
  const spec = specOf({
    podConfig: {
      nodeSelector: { disk: "ssd" },
      runtimeClassName: "sandboxed",
      tolerations: [{ key: "gpu", operator: "Exists", effect: "NoExecute", tolerationSeconds: 5n }],
      affinity: {
        nodeAffinity: {
          required: { terms: [{ matchExpressions: [inZone] }] },
          preferred: [{ weight: 3, preference: { matchFields: [{ ...inZone, key: "metadata.name" }] } }],
        },
        podAffinity: { required: [term] },
        podAntiAffinity: { preferred: [{ weight: 2, term: { topologyKey: "hostname" } }] },
      },
      topologySpreadConstraints: [
        { maxSkew: 2, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway", labelSelector: selector },
      ],
    },
  });
  assert.partialDeepStrictEqual(spec, {
    nodeSelector: { disk: "ssd" },
    runtimeClass: "sandboxed",
    tolerations: [{ key: "gpu", operator: "Exists", value: "", effect: "NoExecute" }],
    nodeAffinity: {
      required: [{ matchExpressions: [inZone], matchFields: [] }],
      preferred: [{ weight: 3, preference: { matchFields: [{ ...inZone, key: "metadata.name" }] } }],
    },
    podAffinity: { required: [term], preferred: [] },
    podAntiAffinity: { preferred: [{ weight: 2, term: { topologyKey: "hostname", namespaces: [] } }] },
    topologySpread: [
      { maxSkew: 2, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway", labelSelector: selector },
    ],
  });
  assert.equal(
    spec.podAntiAffinity?.preferred?.[0]?.term.labelSelector,
    undefined,
    "distinguishes a missing selector from an empty one",
  );
});

test("empty required node terms match no node, missing ones every node", () => {
  const required = (nodeAffinity: object) =>
    specOf({ podConfig: { affinity: { nodeAffinity } } }).nodeAffinity?.required;
  assert.deepEqual(required({ required: { terms: [] } }), []);
  assert.equal(required({}), undefined);
});

function specOf(template: Parameters<typeof PodTemplate.fromPartial>[0]) {
  const pod = aPod();
  const container = { name: "main", image: "app:v1" };
  return podSpecOf({ ...pod.record, template: PodTemplate.fromPartial({ container, ...template }) });
}
