import assert from "node:assert/strict";
import { test } from "node:test";
import { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { opaqueByPod } from "./pod-opaque.ts";

for (const [text, port, expected] of [
  [undefined, 5432, undefined],
  ["", 5432, false],
  ["5432", 5432, true],
  ["5000-6000, 80", 5432, true],
  ["80", 5432, false],
  ["sql", 5432, true],
  ["sql", 5433, false],
  ["metrics", 9187, true],
  ["what is that?", 5432, undefined],
] as const) {
  test(`the annotation "${text}" marks port ${port} as opaque: ${expected}`, () => {
    const template = PodTemplate.fromPartial({
      container: { name: "main", ports: [{ name: "sql", containerPort: 5432 }] },
      sidecars: [{ name: "exporter", ports: [{ name: "metrics", containerPort: 9187 }] }],
      podConfig: { annotations: text === undefined ? {} : { "config.linkerd.io/opaque-ports": text } },
    });
    assert.equal(opaqueByPod(template, port), expected);
  });
}
