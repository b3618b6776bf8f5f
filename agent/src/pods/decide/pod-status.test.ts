import assert from "node:assert/strict";
import { test } from "node:test";
import { probeSpec } from "../../probes/probe-spec.ts";
import type { ContainerMemory, ObservedContainer, Pod, PodContainer, Termination } from "../pod.ts";
import { withTimes } from "../remember-status.ts";
import { podStatus } from "./pod-status.ts";
import { outcomeOf, type PodView } from "./pod-view.ts";

const NOW = 1_000_000;
const CRASH: Termination = {
  exitCode: 3,
  signal: 0,
  reason: "Error",
  message: "oh no",
  startedAtMs: NOW - 2_000,
  finishedAtMs: NOW - 1_000,
};
const STARTED: ContainerMemory = {
  attempt: 1,
  phase: "started",
  containerId: "c1",
  startedAtMs: 5,
  restarts: 0,
  crashes: 0,
  notBeforeMs: 0,
};
const RUNNING: ObservedContainer = {
  id: "c1",
  container: "main",
  attempt: 1,
  specHash: "h",
  state: "running",
};

const CONTAINER: PodContainer = {
  name: "main",
  image: "app:1",
  pullPolicy: "IfNotPresent",
  command: [],
  args: [],
  env: [],
  ports: [],
};
const NUMBERS = {
  initialDelaySeconds: 0,
  periodSeconds: 0,
  timeoutSeconds: 0,
  successThreshold: 0,
  failureThreshold: 0,
};

test("a running pod with published ports is ready and has no reason", () => {
  const status = podStatus(aView({ memory: STARTED, seen: [RUNNING] }));
  assert.equal(status.phase, "RUNNING");
  assert.equal(status.ready, true);
  assert.deepEqual([status.reason, status.message], ["", ""]);
  assert.deepEqual(status.containers[0]?.state, { type: "running", startedAtMs: 5 });
  assert.equal(status.podIp, "10.0.0.2");
  assert.deepEqual(status.podIps, ["10.0.0.2", "fd64::2"]);
});

test("a running pod is not ready before its ports are published", () => {
  assert.equal(podStatus(aView({ memory: STARTED, seen: [RUNNING], published: false })).ready, false);
});

test("the status of a crashed container has its exit code, last lines and restart time", () => {
  const memory = {
    ...STARTED,
    phase: "ended",
    restarts: 1,
    lastTermination: CRASH,
    notBeforeMs: NOW + 9_000,
  } as const;
  const status = podStatus(aView({ memory, begun: true }));
  assert.equal(status.phase, "RUNNING");
  assert.equal(status.ready, false);
  assert.equal(status.reason, "CrashLoopBackOff");
  assert.equal(status.message, "container main exited with code 3: oh no");
  const [container] = status.containers;
  assert.deepEqual(container?.state, {
    type: "waiting",
    reason: "CrashLoopBackOff",
    message: "starts again 10 s after its end",
    retryAtMs: NOW + 9_000,
  });
  assert.deepEqual(container?.terminations, [CRASH]);
  assert.equal(container?.restarts, 1);
});

for (const [change, text] of [
  [{ exitCode: 137, signal: 9 }, "was killed by signal 9: oh no"],
  [{ reason: "OOMKilled" }, "was killed for using more memory than its limit: oh no"],
  [{ reason: "HostRebooted", message: "the host was rebooted" }, "the host was rebooted"],
  [{ message: "" }, "exited with code 3"],
] as const) {
  test(`describes an end as: ${text}`, () => {
    const lastTermination = { ...CRASH, ...change };
    const memory = { ...STARTED, phase: "ended", lastTermination, notBeforeMs: NOW + 9_000 } as const;
    assert.equal(podStatus(aView({ memory })).message, `container main ${text}`);
  });
}

test("a failed start shows its error instead of a crash", () => {
  const lastTermination = { ...CRASH, reason: "StartError", message: "no such file" } as const;
  const memory = { ...STARTED, phase: "ended", lastTermination, notBeforeMs: NOW + 9_000 } as const;
  const status = podStatus(aView({ memory }));
  assert.equal(status.phase, "PENDING");
  assert.deepEqual([status.reason, status.message], ["CreateError", "container main: no such file"]);
});

test("reports in the status that a failure of the host delays the pod", () => {
  const fault = { failures: 1, notBeforeMs: NOW + 1, retryAtMs: NOW + 1, message: "no address is left" };
  const status = podStatus(aView({ faults: new Map([["attachSandbox", fault]]) }));
  assert.deepEqual([status.reason, status.message], ["NetworkSetupFailed", "no address is left"]);
});

test("reports an image as being pulled only during the pull", () => {
  const looking = podStatus(aView({ images: new Map([["main", { type: "fetching", pulling: false }]]) }));
  assert.equal(waitingReason(looking), "ContainerCreating");
  const pulling = podStatus(aView({ images: new Map([["main", { type: "fetching", pulling: true }]]) }));
  assert.equal(waitingReason(pulling), "ImagePull");
});

test("a pod whose containers have ended has succeeded or failed by its exit code", () => {
  const memory = { ...STARTED, phase: "ended", lastTermination: CRASH } as const;
  assert.equal(podStatus(aView({ memory, restartPolicy: "Never" })).phase, "FAILED");
  const well = { ...memory, lastTermination: { ...CRASH, exitCode: 0 } };
  assert.equal(podStatus(aView({ memory: well, restartPolicy: "Never" })).phase, "SUCCEEDED");
});

test("a stopping pod is not ready, and a removed pod has no containers", () => {
  const stopping = podStatus(aView({ memory: STARTED, seen: [RUNNING], goal: "remove" }));
  assert.deepEqual([stopping.phase, stopping.ready], ["STOPPING", false]);
  const removed = podStatus(aView({ goal: "remove", removed: true }));
  assert.deepEqual([removed.phase, removed.containers, removed.hostPorts], ["REMOVED", [], []]);
});

test("the status of a pod that can't run gives the reason", () => {
  const status = podStatus(aView({ problem: "this agent doesn't support volumes" }));
  assert.deepEqual([status.phase, status.reason], ["FAILED", "InvalidSpec"]);
});

const READINESS = { readiness: probeSpec("readiness", { type: "tcp", port: 80 }, NUMBERS) };
const REFUSED = { started: true, ready: false, why: "readiness probe fails: connection refused" };

test("a container whose readiness probe fails is not ready, and the status gives the reason", () => {
  const probed = aView({ memory: STARTED, seen: [RUNNING], container: { probes: READINESS } });
  const status = podStatus({ ...probed, verdicts: new Map([["c1", REFUSED]]) });
  assert.deepEqual([status.phase, status.ready], ["RUNNING", false]);
  assert.equal(status.reason, "ContainersNotReady");
  assert.equal(status.message, "container main: readiness probe fails: connection refused");
  assert.deepEqual(
    status.containers.map(({ ready, started }) => [ready, started]),
    [[false, true]],
  );
  assert.equal(podStatus(probed).ready, false, "before it was asked");
});

test("uses the readiness that the previous agent recorded until the first probe", () => {
  const known = { ...STARTED, health: { started: true, ready: true } };
  const view = aView({ memory: known, seen: [RUNNING], container: { probes: READINESS } });
  assert.equal(podStatus(view).ready, true);
  const another = { ...RUNNING, id: "c2", attempt: 2 };
  assert.equal(podStatus({ ...view, containers: [another] }).ready, false, "of another run it knows nothing");
});

test("a container is not ready before its hook has ended or while it is being stopped", () => {
  const hooks = { postStart: { type: "exec", command: ["hook"] } } as const;
  const hooked = podStatus(aView({ memory: STARTED, seen: [RUNNING], container: { hooks } }));
  assert.deepEqual(
    [hooked.ready, hooked.message],
    [false, "container main: its post_start hook has not ended yet"],
  );
  const cause = { reason: "LivenessProbeFailed", message: "liveness probe failed" } as const;
  const ending = podStatus(aView({ memory: { ...STARTED, stop: { sinceMs: 1, cause } }, seen: [RUNNING] }));
  assert.equal(ending.message, "container main: it is being restarted: liveness probe failed");
});

test("containers wait for init containers, and a failing init container is the pod's reason", () => {
  const seed = { ...CONTAINER, name: "seed" };
  const view = aView({ initContainers: [seed] });
  const waiting = podStatus(view).containers.map(({ state }) => state.type === "waiting" && state.reason);
  assert.deepEqual(waiting, ["ContainerCreating", "PodInitializing"]);
  const failed = { ...STARTED, phase: "ended", lastTermination: CRASH, notBeforeMs: NOW + 9_000 } as const;
  const status = podStatus({ ...view, memory: { ...view.memory, containers: { seed: failed } } });
  assert.deepEqual(
    [status.phase, status.reason, status.message],
    ["PENDING", "CrashLoopBackOff", "container seed exited with code 3: oh no"],
  );
});

test("a finished init container is ready, but does not affect the pod's readiness", () => {
  const seed = { ...CONTAINER, name: "seed" };
  const done = { ...STARTED, phase: "ended", lastTermination: { ...CRASH, exitCode: 0 } } as const;
  const view = aView({ initContainers: [seed], memory: STARTED, seen: [RUNNING] });
  const status = podStatus({
    ...view,
    memory: { ...view.memory, containers: { seed: done, main: STARTED } },
  });
  assert.equal(status.ready, true);
  assert.deepEqual(
    status.containers.map(({ name, init, ready, started, terminations }) => [
      name,
      init,
      ready,
      started,
      terminations.length,
    ]),
    [
      ["seed", true, true, false, 0],
      ["main", false, true, true, 0],
    ],
  );
});

test("a missing object is reported as the reason for waiting", () => {
  const fault = {
    failures: 1,
    notBeforeMs: NOW + 9,
    retryAtMs: NOW + 9,
    message: "secret db doesn't exist",
    reason: "CreateContainerConfigError",
  } as const;
  const status = podStatus(aView({ faults: new Map([["startContainer/main", fault]]) }));
  assert.equal(status.reason, "CreateContainerConfigError");
  assert.equal(status.message, "container main: secret db doesn't exist");
});

test("a pod has not ended until its outcome is on disk, and its status gives the reason", () => {
  const fault = { failures: 1, notBeforeMs: 0, retryAtMs: 0, message: "no space left" };
  const memory = { ...STARTED, phase: "ended", lastTermination: CRASH } as const;
  const faults = new Map([["saveOutcome", fault]]);
  const status = podStatus(aView({ memory, restartPolicy: "Never", unsaved: true, faults }));
  assert.deepEqual(
    [status.phase, status.reason, status.message],
    ["RUNNING", "OutcomeNotSaved", fault.message],
  );
});

test("an evicted pod is FAILED with a reason once that is on disk, also while it is removed", () => {
  const view = aView({ memory: STARTED, seen: [RUNNING] });
  const failure = { reason: "Evicted", message: "volume data: too much" } as const;
  const evicted: PodView = { ...view, memory: { ...view.memory, failure } };
  for (const [savedOutcome, phase] of [
    ["FAILED", "FAILED"],
    [undefined, "RUNNING"],
  ] as const) {
    const status = podStatus({ ...evicted, savedOutcome });
    assert.deepEqual(
      [status.phase, status.ready, status.reason, status.message],
      [phase, false, "Evicted", failure.message],
    );
  }
  const stopping = podStatus({ ...view, memory: { ...view.memory, failure }, goal: "remove" });
  assert.deepEqual([stopping.phase, stopping.reason], ["STOPPING", "Evicted"]);
});

test("reports earlier ends, newest first, without the current one", () => {
  const memory = { ...STARTED, lastTermination: CRASH, earlier: [{ ...CRASH, exitCode: 4 }] };
  const codes = (status: ReturnType<typeof podStatus>) =>
    status.containers[0]?.terminations.map((it) => it.exitCode);
  assert.deepEqual(codes(podStatus(aView({ memory, seen: [RUNNING] }))), [3, 4]);
  const over = aView({ memory: { ...memory, phase: "ended" }, restartPolicy: "Never" });
  assert.deepEqual(codes(podStatus(over)), [4]);
});

test("a pod ends when its last sidecar has ended", () => {
  const memory = { ...STARTED, phase: "ended", lastTermination: { ...CRASH, exitCode: 0 } } as const;
  const view = aView({
    memory,
    restartPolicy: "OnFailure",
    sidecars: [{ ...CONTAINER, name: "side" }],
    begun: true,
  });
  const side = { ...RUNNING, id: "s", container: "side" };
  assert.equal(podStatus({ ...view, containers: [side] }).phase, "RUNNING");
  assert.equal(podStatus(view).phase, "SUCCEEDED");
});

test("the same view gives an equal status at a later time", () => {
  const view = aView({ memory: STARTED, seen: [RUNNING] });
  assert.deepEqual(podStatus({ ...view, nowMs: NOW + 60_000 }), podStatus(view));
});

test("remembers when the pod started and when it last became ready", () => {
  const view = aView({ memory: STARTED, seen: [RUNNING] });
  const first = withTimes(view.memory, podStatus(view), 10);
  assert.deepEqual([first.startedAtMs, first.readyAtMs], [10, 10]);
  assert.equal(withTimes(first, podStatus(view), 20), first);
  const unready = podStatus({ ...view, published: false });
  assert.deepEqual(withTimes(first, unready, 30).readyAtMs, undefined);
  assert.deepEqual(withTimes(first, unready, 30).startedAtMs, 10);
});

interface Shape {
  readonly container?: Partial<PodContainer>;
  readonly initContainers?: readonly PodContainer[];
  readonly sidecars?: readonly PodContainer[];
  readonly goal?: PodView["goal"];
  readonly memory?: ContainerMemory;
  readonly seen?: readonly ObservedContainer[];
  readonly published?: boolean;
  readonly begun?: boolean;
  readonly removed?: boolean;
  readonly problem?: string;
  readonly restartPolicy?: Pod["restartPolicy"];
  readonly images?: PodView["images"];
  readonly faults?: PodView["faults"];
  /** Whether its outcome is not on disk yet. */
  readonly unsaved?: boolean;
}

function aView(shape: Shape): PodView {
  const view = anUnsavedView(shape);
  return shape.unsaved ? view : { ...view, savedOutcome: outcomeOf(view) };
}

function anUnsavedView(shape: Shape): PodView {
  const { goal = "run", seen = [], published = true, removed = false, restartPolicy = "Always" } = shape;
  return {
    pod: {
      uid: "p",
      namespace: "default",
      name: "pod",
      specHash: "h",
      stopping: goal === "remove",
      hostname: "pod",
      graceMs: 5_000,
      restartPolicy,
      initContainers: shape.initContainers ?? [],
      containers: [...(shape.sidecars ?? []), { ...CONTAINER, ...shape.container }],
      ...(shape.problem !== undefined && { problem: shape.problem }),
    },
    goal,
    containers: seen,
    stale: false,
    published,
    volumesOutdated: false,
    verdicts: new Map(),
    underWay: new Set(),
    images: shape.images ?? new Map([["main", { type: "present" }]]),
    memory: {
      sandbox: { podUid: "p", namespacePath: "/run/netns/p", address: "10.0.0.2", address6: "fd64::2" },
      ports: [],
      containers: shape.memory === undefined ? {} : { main: shape.memory },
      removed,
      ...(shape.begun && { startedAtMs: 1 }),
    },
    savedOutcome: undefined,
    faults: shape.faults ?? new Map(),
    nowMs: NOW,
    monotonicMs: NOW,
  };
}

function waitingReason(status: ReturnType<typeof podStatus>): string {
  const state = status.containers[0]?.state;
  return state?.type === "waiting" ? state.reason : "";
}
