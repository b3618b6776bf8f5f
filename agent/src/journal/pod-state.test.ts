import assert from "node:assert/strict";
import { test } from "node:test";
import { decodePodState, encodePodState, type PodState } from "./pod-state.ts";

const FULL: PodState = {
  sandbox: { namespacePath: "/run/netns/x", address: "10.0.0.2", address6: "fd64::2" },
  hostPorts: [{ container: "web", containerPort: 80, protocol: "UDP", hostPort: 20_000 }],
  containers: { web: { attempt: 2, restartCount: 1 } },
  outcome: "FAILED",
  startedAtMs: 1,
  readyAtMs: 2.5,
};

test("a decoded state equals the encoded one", () => {
  assert.deepEqual(decodePodState(encodePodState(FULL)), FULL);
  const least: PodState = { hostPorts: [], containers: {} };
  assert.deepEqual(decodePodState(encodePodState(least)), least);
});

test("drops unknown fields of a later version", () => {
  assert.deepEqual(decodePodState(bytesOf({ ...FULL, later: 1 })), FULL);
});

for (const [field, broken] of [
  ["containers", { hostPorts: [] }],
  ["hostPorts", { containers: {}, hostPorts: {} }],
  ["hostPort", { ...FULL, hostPorts: [{ ...FULL.hostPorts[0], hostPort: 65_536 }] }],
  ["protocol", { ...FULL, hostPorts: [{ ...FULL.hostPorts[0], protocol: "ICMP" }] }],
  ["attempt", { ...FULL, containers: { web: { attempt: -1, restartCount: 0 } } }],
  ["outcome", { ...FULL, outcome: "MAYBE" }],
  ["address", { ...FULL, sandbox: { namespacePath: "x" } }],
  ["address6", { ...FULL, sandbox: { namespacePath: "x", address: "a", address6: 6 } }],
  [
    "message",
    {
      ...FULL,
      containers: {
        web: { attempt: 1, restartCount: 0, lastTermination: { exitCode: 1, signal: 0, reason: "" } },
      },
    },
  ],
] as const) {
  test(`names an invalid ${field}`, () => {
    assert.throws(() => decodePodState(bytesOf(broken)), new RegExp(`^Error: ${field} is not`));
  });
}

function bytesOf(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
