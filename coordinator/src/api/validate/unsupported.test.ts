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
import { Field } from "./field.ts";
import { Findings } from "./findings.ts";
import { supportOf } from "./supported.ts";
import { findUnsupported } from "./unsupported.ts";

describe("every field of every message, set alone, is acted on or refused by its path", () => {
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

test("what says nothing, or says what happens anyway, is accepted", () => {
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

test("what nothing acts on is refused by its path, and so is a value that nothing acts on", () => {
  const findings = new Findings();
  const ports = [{ port: 80 }, { port: 81, protocol: "SCTP" }];
  const value = { target: "web", ports, sessionAffinity: "ClientIP" };
  const service = ForageResource.fromPartial({ name: "web", spec: { $case: "service", value } });
  findUnsupported(service, "forest.v1.ForageResource", new Field(findings), (message, field) => {
    if (message === "forest.v1.ServiceSpec" && field === "session_affinity") return undefined;
    return message === "forest.v1.ServicePort" && field === "protocol" ? ["TCP", "UDP"] : "all";
  });
  assert.throws(() => findings.raise(), {
    code: "UNIMPLEMENTED",
    violations: [
      {
        field: "service.ports[1].protocol",
        description: "SCTP is not supported by this version; TCP, UDP are",
      },
      { field: "service.session_affinity", description: "is not supported by this version" },
    ],
  });
});

test("this version acts on every field of the contract", () => {
  for (const { steps } of everyField())
    for (const { type, field } of steps) assert.equal(supportOf(type, field.name), "all", field.name);
});

function checkAlone(chain: FieldChain, value: unknown): void {
  if (isForbidden(chain)) return;
  const verdict = verdictOnResource(resourceWith(chain, value));
  const what = `${chain.names.join(".")} = ${JSON.stringify(value, (_, v) => (typeof v === "bigint" ? String(v) : v))}`;
  assert.notEqual(verdict.code, "INVALID", `${what}: ${verdict.message}`);
  const fields = verdict.violations.map(({ field }) => field);
  const refused = refusedPath(chain, value);
  const rest = fields.filter((field) => !alsoSet(chain).some((end) => field.endsWith(end)));
  if (refused === undefined) assert.deepEqual(rest, [], what);
  else {
    assert.ok(fields.includes(refused), `${what} is not refused at ${refused}, but at ${fields.join(", ")}`);
    assert.deepEqual(
      rest.filter((field) => field !== refused),
      [],
      what,
    );
  }
}

/** Where the chain first leaves what is supported; undefined if it never does. */
function refusedPath({ steps }: FieldChain, value: unknown): string | undefined {
  let path = "resources[0]";
  for (const [index, { type, field }] of steps.entries()) {
    path += `.${field.name}`;
    const support = supportOf(type, field.name);
    const last = index === steps.length - 1;
    if (last && field.oneof === undefined && !field.repeated && saysNothing(value, field.map))
      return undefined;
    if (support === undefined) return path;
    if (support !== "all" && !support.includes(String(value))) return path;
    if (field.repeated) path += "[0]";
  }
  return undefined;
}

function saysNothing(value: unknown, map: boolean): boolean {
  if (map) return Object.keys(Object(value)).length === 0;
  return value === "" || value === 0 || value === 0n || value === false;
}
