import assert from "node:assert/strict";
import { test } from "node:test";
import { type ProbeHandler, type ProbeKind, type ProbeNumbers, probeSpec } from "./probe-spec.ts";

const NOTHING_SET: ProbeNumbers = {
  initialDelaySeconds: 0,
  periodSeconds: 0,
  timeoutSeconds: 0,
  successThreshold: 0,
  failureThreshold: 0,
};
const TCP: ProbeHandler = { type: "tcp", port: 80 };

test("zero means Kubernetes' defaults", () => {
  for (const kind of ["startup", "liveness", "readiness"] as const) {
    assert.deepEqual(probeSpec(kind, TCP, NOTHING_SET), {
      handler: TCP,
      initialDelayMs: 0,
      periodMs: 10_000,
      timeoutMs: 1_000,
      successThreshold: 1,
      failureThreshold: 3,
    });
  }
});

test("keeps the given numbers", () => {
  const numbers = {
    initialDelaySeconds: 7,
    periodSeconds: 2,
    timeoutSeconds: 4,
    successThreshold: 5,
    failureThreshold: 6,
  };
  assert.deepEqual(probeSpec("readiness", TCP, numbers), {
    handler: TCP,
    initialDelayMs: 7_000,
    periodMs: 2_000,
    timeoutMs: 4_000,
    successThreshold: 5,
    failureThreshold: 6,
  });
});

test("rejects impossible probes with the reason", () => {
  const refused: [ProbeKind, ProbeHandler, Partial<ProbeNumbers>, RegExp][] = [
    ["liveness", TCP, { successThreshold: 2 }, /^liveness probe: success_threshold must be 1, not 2$/],
    ["startup", TCP, { successThreshold: 3 }, /^startup probe: success_threshold must be 1, not 3$/],
    ["readiness", { type: "tcp", port: 0 }, {}, /^readiness probe: tcp: 0 is not a port$/],
    ["readiness", { type: "grpc", port: 65_536, service: "" }, {}, /grpc: 65536 is not a port$/],
    ["liveness", { type: "exec", command: [] }, {}, /^liveness probe: exec: the command is empty$/],
  ];
  for (const [kind, handler, numbers, message] of refused) {
    assert.throws(() => probeSpec(kind, handler, { ...NOTHING_SET, ...numbers }), { message });
  }
});
