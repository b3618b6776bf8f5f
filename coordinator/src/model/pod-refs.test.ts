import assert from "node:assert/strict";
import { test } from "node:test";
import { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { refsOf } from "./pod-refs.ts";

test("returns the objects that a pod refers to, each once", () => {
  const secret = (secretName: string) => ({ $case: "secretRef" as const, value: { secretName, key: "k" } });
  const template = PodTemplate.fromPartial({
    container: {
      name: "main",
      env: [
        { name: "A", valueSource: secret("db") },
        { name: "B", valueSource: secret("tls") },
      ],
    },
    volumes: [{ name: "keys", source: { $case: "secret", value: { secretName: "tls" } } }],
    podConfig: { priorityClassName: "high", imagePullSecrets: ["hub"] },
  });
  assert.deepEqual(refsOf("shop", template), [
    { namespace: "shop", kind: "secret", name: "db", env: true, live: false },
    { namespace: "shop", kind: "secret", name: "tls", env: true, live: true },
    { namespace: "shop", kind: "registry_credential", name: "hub", env: false, live: true },
    { namespace: "", kind: "priority_class", name: "high", env: false, live: true },
  ]);
  assert.deepEqual(refsOf("shop", PodTemplate.fromPartial({})), []);
});
