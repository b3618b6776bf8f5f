import assert from "node:assert/strict";
import { test } from "node:test";
import { readBundles } from "./bundles.ts";

const options = { namespace: "default", flagNamespace: undefined };

function scalingOf(text: string): unknown {
  const [bundle] = readBundles([{ name: "f", text }], options);
  const spec = bundle?.request.resources[0]?.spec;
  assert.ok(spec?.$case === "containerService");
  return spec.value.scaling?.replicas;
}

for (const [scaling, expected] of [
  ["{}", undefined],
  ["{ replicas: }", undefined],
  ["{ replicas: 0 }", 0],
  ["{ replicas: 3 }", 3],
  ["{ autoscaling: { max_replicas: 4 } }", 0],
] as const) {
  test(`${expected === undefined ? "omits" : "sends"} scaling: ${scaling}`, () => {
    const service = `container_service: { scaling: ${scaling}, container: { name: web, image: web } }`;
    assert.equal(scalingOf(`name: web\n${service}`), expected);
    assert.equal(scalingOf(`resources:\n  - name: web\n    ${service}`), expected);
    const camel = service.replace("container_service", "containerService");
    assert.equal(scalingOf(`name: web\n${camel}`), expected);
  });
}
