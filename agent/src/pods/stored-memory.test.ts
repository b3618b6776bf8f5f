import assert from "node:assert/strict";
import { test } from "node:test";
import { decodePodState, encodePodState } from "../journal/pod-state.ts";
import { EMPTY_MEMORY, type PodMemory } from "./pod.ts";
import { fromPodState, toPodState } from "./stored-memory.ts";

const FULL: PodMemory = {
  sandbox: { podUid: "p", namespacePath: "/run/netns/x", address: "10.0.0.2", address6: "fd64::2" },
  ports: [{ container: "main", containerPort: 80, protocol: "TCP", hostPort: 20_000 }],
  containers: {
    main: {
      attempt: 3,
      phase: "started",
      containerId: "abc",
      startedAtMs: 5,
      restarts: 2,
      crashes: 2,
      notBeforeMs: 7,
      lastTermination: {
        exitCode: 137,
        signal: 9,
        reason: "OOMKilled",
        message: "last",
        startedAtMs: 1,
        finishedAtMs: 4,
      },
      earlier: [
        {
          exitCode: 143,
          signal: 15,
          reason: "LivenessProbeFailed",
          message: "liveness probe failed",
          startedAtMs: 0,
          finishedAtMs: 1,
        },
      ],
      postStart: "begun",
      health: { started: true, ready: false },
      stop: { sinceMs: 6, cause: { reason: "StartupProbeFailed", message: "startup probe failed" } },
    },
    side: { attempt: 0, phase: "new", restarts: 0, crashes: 0, notBeforeMs: 0 },
  },
  startedAtMs: 1,
  readyAtMs: 2,
  begun: "main",
  failure: { reason: "Evicted", message: "volume data: too much" },
  removed: false,
};

for (const [name, memory] of [
  ["a full memory", FULL],
  ["an empty one", EMPTY_MEMORY],
  ["one with no ports to publish", { ...EMPTY_MEMORY, ports: [] }],
  ["one of a removed pod", { ...EMPTY_MEMORY, removed: true }],
] as const) {
  test(`restores from disk without change: ${name}`, () => {
    const bytes = encodePodState(toPodState(memory));
    assert.deepEqual(fromPodState("p", decodePodState(bytes)), memory);
  });
}
