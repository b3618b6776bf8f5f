import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import {
  alsoSet,
  everyField,
  type FieldChain,
  isForbidden,
  resourceWith,
  valuesAt,
} from "../../../test/support/forest/set-alone.ts";
import { verdictOnResource } from "../../../test/support/verdict.ts";

describe("accepts every field of every message when it is set alone", () => {
  const chains = everyField();
  const byKind = Map.groupBy(chains, ({ names }) => names[0] ?? "");
  for (const [kind, ofKind] of byKind) {
    test(`${kind}: ${ofKind.length} fields`, () => {
      for (const chain of ofKind) {
        for (const value of valuesAt(chain)) checkAlone(chain, value);
      }
    });
  }
});

test("accepts empty messages and values that equal the default", () => {
  const container = { name: "main", image: "app:v1", securityContext: { capabilities: {} }, lifecycle: {} };
  for (const spec of [
    { updateStrategy: { type: "RollingUpdate" } },
    { updateStrategy: { type: "RollingUpdate", rollingUpdate: {} } },
    { updateStrategy: { rollingUpdate: { maxSurge: "25%", maxUnavailable: "25%" } } },
    { sidecars: [], initContainers: [], volumes: [] },
    {
      podConfig: { restartPolicy: "Always", dnsPolicy: "ClusterFirst", hostNetwork: false, tolerations: [] },
    },
    { podConfig: { affinity: { nodeAffinity: {} }, dnsConfig: {}, securityContext: {}, nodeSelector: {} } },
  ]) {
    const value = { container, ...spec };
    const resource = ForageResource.fromPartial({ name: "web", spec: { $case: "containerService", value } });
    assert.deepEqual(verdictOnResource(resource), { code: "OK", message: "", violations: [] });
  }
  const value = { target: "web", type: "ClusterIP", sessionAffinity: "None", ports: [{ port: 80 }] };
  const service = ForageResource.fromPartial({ name: "web", spec: { $case: "service", value } });
  assert.equal(verdictOnResource(service).code, "OK");
});

function checkAlone(chain: FieldChain, value: unknown): void {
  if (isForbidden(chain)) return;
  const verdict = verdictOnResource(resourceWith(chain, value));
  const what = `${chain.names.join(".")} = ${JSON.stringify(value, (_, v) => (typeof v === "bigint" ? String(v) : v))}`;
  assert.notEqual(verdict.code, "INVALID", `${what}: ${verdict.message}`);
  const rest = verdict.violations
    .map(({ field }) => field)
    .filter((field) => !alsoSet(chain).some((end) => field.endsWith(end)));
  assert.deepEqual(rest, [], what);
}
