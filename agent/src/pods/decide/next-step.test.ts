import assert from "node:assert/strict";
import { test } from "node:test";
import type { ContainerMemory, ImageState, ObservedContainer, Pod, PodContainer, PodMemory } from "../pod.ts";
import { nextStep } from "./next-step.ts";
import { outcomeOf, type PodView } from "./pod-view.ts";

const NOW = 1_000_000;
const LIMITS = { baseMs: 10_000, capMs: 300_000, goodRunMs: 600_000 };
const SANDBOX = { podUid: "p", namespacePath: "/run/netns/p", address: "10.0.0.2" };

const NEW: ContainerMemory = { attempt: 0, phase: "new", restarts: 0, crashes: 0, notBeforeMs: 0 };
const STARTED: ContainerMemory = { ...NEW, attempt: 1, phase: "started", containerId: "c1" };
const ENDED: ContainerMemory = {
  ...NEW,
  attempt: 1,
  phase: "ended",
  crashes: 1,
  lastTermination: { exitCode: 1, signal: 0, reason: "Error", message: "", startedAtMs: 0, finishedAtMs: 0 },
};

const EXTRA = { container: "main", containerPort: 9090, protocol: "TCP" } as const;

const START = { type: "startContainer", container: "main", attempt: 1 } as const;

const CASES: readonly (readonly [string, PodView, unknown])[] = [
  [
    "an image in an unknown state is fetched first",
    aView({ image: "unknown" }),
    { type: "fetchImage", container: "main", image: "app:1", policy: "IfNotPresent" },
  ],
  [
    "the namespace is made while the image comes",
    aView({ image: "fetching", sandbox: false }),
    { type: "attachSandbox" },
  ],
  ["no start without the image", aView({ image: "fetching", published: true }), { type: "wait" }],
  ["a start once all is there", aView({}), START],
  [
    "the outcome of a pod is saved again that the disk did not take",
    aView({ memory: ENDED, seen: [exited("c1", 1)], restartPolicy: "Never", unsaved: true }),
    { type: "saveOutcome" },
  ],
  [
    "an outcome on disk needs nothing",
    aView({ memory: ENDED, seen: [exited("c1", 1)], restartPolicy: "Never" }),
    { type: "wait" },
  ],
  [
    "an image that failed is waited for",
    aView({ image: "failed", retryAtMs: NOW + 5, published: true }),
    { type: "wait", untilMs: NOW + 5 },
  ],
  [
    "and fetched again when its time has come",
    aView({ image: "failed", retryAtMs: NOW }),
    { type: "fetchImage", container: "main", image: "app:1", policy: "IfNotPresent" },
  ],
  [
    "ports are chosen before they are published",
    aView({ seen: [running("c1", 1)], memory: STARTED, ports: false }),
    { type: "allocatePorts" },
  ],
  [
    "and published once chosen",
    aView({ seen: [running("c1", 1)], memory: STARTED }),
    { type: "publishPorts" },
  ],
  [
    "a service's port that no container declares is published while the pod runs",
    aView({ seen: [running("c1", 1)], memory: STARTED, published: true, servicePorts: [EXTRA] }),
    { type: "updatePorts", ports: [EXTRA] },
  ],
  [
    "a pod that is healthy needs nothing",
    aView({ seen: [running("c1", 1)], memory: STARTED, published: true }),
    { type: "wait" },
  ],
  [
    "a running container that isn't remembered is taken over",
    aView({ seen: [running("c7", 3)] }),
    { type: "adopt", container: "main", id: "c7" },
  ],
  [
    "a paused one is left alone",
    aView({ seen: [{ ...running("c1", 1), state: "paused" }], memory: STARTED, published: true }),
    { type: "wait" },
  ],
  [
    "an end is written down",
    aView({ seen: [exited("c1", 1)], memory: STARTED }),
    { type: "recordExit", container: "main", id: "c1" },
  ],
  [
    "so is a container that is gone altogether",
    aView({ memory: STARTED }),
    { type: "recordExit", container: "main" },
  ],
  [
    "one that ended before anybody noted its start is taken over first",
    aView({ seen: [exited("c2", 2)] }),
    { type: "adopt", container: "main", id: "c2" },
  ],
  [
    "the next attempt has the next number",
    aView({ seen: [exited("c1", 1)], memory: ENDED }),
    { ...START, attempt: 2 },
  ],
  [
    "whatever the number was",
    aView({ seen: [exited("c3", 3)], memory: { ...ENDED, attempt: 3 } }),
    { ...START, attempt: 4 },
  ],
  [
    "a back-off is waited for",
    aView({ seen: [exited("c1", 1)], memory: { ...ENDED, notBeforeMs: NOW + 9 }, published: true }),
    { type: "wait", untilMs: NOW + 9 },
  ],
  [
    "but not for ever after the clock was set back",
    aView({ seen: [exited("c1", 1)], memory: { ...ENDED, notBeforeMs: NOW + 900_000 } }),
    { ...START, attempt: 2 },
  ],
  [
    "a fresh start leaves the last attempt to be removed",
    aView({
      seen: [exited("c1", 1), running("c2", 2)],
      memory: { ...STARTED, attempt: 2, containerId: "c2" },
    }),
    { type: "removeContainers", ids: ["c1"] },
  ],
  [
    "of two that run the older is ended",
    aView({
      seen: [running("c1", 1), running("c2", 2)],
      memory: { ...STARTED, attempt: 2, containerId: "c2" },
    }),
    aStop("c1"),
  ],
  [
    "a container that was made but never ran is removed",
    aView({ seen: [{ ...running("c1", 1), state: "created" }] }),
    { type: "removeContainers", ids: ["c1"] },
  ],
  [
    "waits while a container's state is unknown",
    aView({ seen: [unknown("c1", NOW - 1_000)], memory: STARTED, published: true }),
    { type: "wait", untilMs: NOW + 29_000 },
  ],
  [
    "but not for ever",
    aView({ seen: [unknown("c1", NOW - 30_000)], memory: STARTED }),
    { type: "recordExit", container: "main", id: "c1" },
  ],
  [
    "a container of another template is ended",
    aView({ seen: [{ ...running("c1", 1), specHash: "old" }] }),
    aStop("c1"),
  ],
  [
    "a container that the pod no longer has is ended",
    aView({ seen: [{ ...running("c1", 1), container: "gone" }] }),
    aStop("c1", { container: "gone" }),
  ],
  [
    "what runs in a lost namespace is ended before a new one is made",
    aView({ seen: [running("c1", 1)], memory: STARTED, sandbox: false }),
    aStop("c1"),
  ],
  [
    "a stale view is refreshed first",
    aView({ seen: [exited("c1", 1)], memory: STARTED, stale: true }),
    { type: "inspect" },
  ],
  [
    "what failed is not tried before its time",
    aView({ published: true, fault: ["startContainer/main", NOW + 7] }),
    { type: "wait", untilMs: NOW + 7 },
  ],
  [
    "nor does it hold up what doesn't need it",
    aView({ fault: ["startContainer/main", NOW + 7] }),
    { type: "publishPorts" },
  ],
  [
    "OnFailure: one that ended well stays ended",
    aView({ seen: [exited("c1", 1)], memory: well(ENDED), published: true, restartPolicy: "OnFailure" }),
    { type: "wait" },
  ],
  [
    "OnFailure: one that failed runs again",
    aView({ seen: [exited("c1", 1)], memory: ENDED, restartPolicy: "OnFailure" }),
    { ...START, attempt: 2 },
  ],
  [
    "Never: it doesn't",
    aView({ seen: [exited("c1", 1)], memory: ENDED, published: true, restartPolicy: "Never" }),
    { type: "wait" },
  ],
  [
    "what can't be run is left as it is",
    aView({ seen: [running("c1", 1)], problem: "no" }),
    { type: "wait" },
  ],
  [
    "a stopping pod's container is given its grace period",
    aView({ goal: "remove", seen: [running("c1", 1)] }),
    aStop("c1"),
  ],
  [
    "then removed",
    aView({ goal: "remove", seen: [exited("c1", 1)] }),
    { type: "removeContainers", ids: ["c1"] },
  ],
  ["then the rest", aView({ goal: "remove" }), { type: "cleanUp" }],
  ["then there is nothing to do", aView({ goal: "remove", removed: true }), { type: "wait" }],
  [
    "unless something turns up late",
    aView({ goal: "remove", removed: true, seen: [running("c1", 1)] }),
    aStop("c1"),
  ],
  [
    "a container whose stop has failed twice is stopped again",
    aView({ goal: "remove", seen: [running("c1", 1)], fault: ["stopContainer/c1", NOW, 2] }),
    aStop("c1"),
  ],
  [
    "one that can't be stopped is removed by force",
    aView({ goal: "remove", seen: [running("c1", 1)], fault: ["stopContainer/c1", NOW, 3] }),
    { type: "removeContainers", ids: ["c1"] },
  ],
];

for (const [name, view, expected] of CASES) {
  test(name, () => {
    const decision = nextStep(view, LIMITS);
    assert.deepEqual(decision.type === "step" ? decision.step : decision, expected);
  });
}

test("waits for the nearest due step if no step is due", () => {
  const view = aView({ image: "failed", retryAtMs: NOW + 50, fault: ["publishPorts", NOW + 20] });
  assert.deepEqual(nextStep(view, LIMITS), { type: "wait", untilMs: NOW + 20 });
});

test("a sidecar is stopped after the main container, with the rest of the grace period", () => {
  const side = { ...running("s1", 1), container: "side" };
  const both = aView({ goal: "remove", seen: [side, running("c1", 1)], sidecar: true });
  assert.deepEqual(nextStep(both, LIMITS), step(aStop("c1")));
  const later = { ...both, containers: [side, exited("c1", 1)], stoppingSinceMs: NOW - 2_000 };
  assert.deepEqual(nextStep(later, LIMITS), step(aStop("s1", { container: "side", graceMs: 3_000 })));
  const last = { ...later, stoppingSinceMs: NOW - 60_000 };
  assert.deepEqual(nextStep(last, LIMITS), step(aStop("s1", { container: "side", graceMs: 2_000 })));
});

test("pull policy Always pulls once for each pod: a restart uses the image of the first start", () => {
  const latest = aContainer("main", { image: "app", pullPolicy: "Always" });
  const fresh = aView({ image: "unknown", containers: [latest] });
  assert.deepEqual(
    nextStep(fresh, LIMITS),
    step({ type: "fetchImage", container: "main", image: "app", policy: "Always" }),
  );
  const again = aView({ image: "unknown", containers: [latest], memory: ENDED });
  assert.deepEqual(
    nextStep(again, LIMITS),
    step({ type: "fetchImage", container: "main", image: "app", policy: "IfNotPresent" }),
  );
});

/** The step that stops a run of the container `main`. */
function aStop(id: string, change: object = {}) {
  return { type: "stopContainer", container: "main", id, graceMs: 5_000, ...change };
}

function step(value: object) {
  return { type: "step", step: value };
}

interface Shape {
  readonly goal?: PodView["goal"];
  readonly seen?: readonly ObservedContainer[];
  readonly memory?: ContainerMemory;
  readonly sandbox?: boolean;
  readonly ports?: boolean;
  readonly published?: boolean;
  readonly removed?: boolean;
  readonly image?: "unknown" | "fetching" | "present" | "failed";
  readonly retryAtMs?: number;
  readonly stale?: boolean;
  /** Step key, time before which it is not retried, and failures. */
  readonly fault?: readonly [string, number, number?];
  readonly problem?: string;
  readonly restartPolicy?: Pod["restartPolicy"];
  readonly containers?: readonly PodContainer[];
  readonly servicePorts?: Pod["servicePorts"];
  readonly sidecar?: boolean;
  /** Whether its outcome is not on disk yet. */
  readonly unsaved?: boolean;
}

/** Returns a pod with one container `main` that has to run; everything except the container is present. */
function aView(shape: Shape): PodView {
  const view = anUnsavedView(shape);
  return shape.unsaved ? view : { ...view, savedOutcome: outcomeOf(view) };
}

function anUnsavedView(shape: Shape): PodView {
  const { goal = "run", seen = [], memory = NEW, sandbox = true, ports = true, published = false } = shape;
  const { image = "present", retryAtMs = NOW, stale = false, fault, removed = false } = shape;
  const main = aContainer("main");
  const containers = shape.containers ?? (shape.sidecar ? [aContainer("side"), main] : [main]);
  const podMemory: PodMemory = {
    ...(sandbox && { sandbox: SANDBOX }),
    ...(ports && { ports: [] }),
    containers: { main: memory },
    removed,
  };
  return {
    pod: {
      uid: "p",
      namespace: "default",
      name: "pod",
      specHash: "hash",
      stopping: goal === "remove",
      hostname: "pod",
      graceMs: 5_000,
      restartPolicy: shape.restartPolicy ?? "Always",
      containers,
      ...(shape.servicePorts && { servicePorts: shape.servicePorts }),
      ...(shape.problem !== undefined && { problem: shape.problem }),
    },
    goal,
    ...(goal === "remove" && { stoppingSinceMs: NOW }),
    containers: seen,
    stale,
    published,
    volumesOutdated: false,
    verdicts: new Map(),
    underWay: new Set(),
    images: new Map([["main", anImage(image, retryAtMs)]]),
    memory: podMemory,
    savedOutcome: undefined,
    faults: new Map(
      fault && [
        [
          fault[0],
          { failures: fault[2] ?? 1, notBeforeMs: fault[1], retryAtMs: fault[1], message: "failed" },
        ],
      ],
    ),
    nowMs: NOW,
    monotonicMs: NOW,
  };
}

function anImage(kind: NonNullable<Shape["image"]>, retryAtMs: number): ImageState {
  if (kind === "fetching") return { type: kind, pulling: false };
  if (kind === "failed")
    return { type: kind, reason: "ImagePullBackOff", message: "no route", retryAtMs, notBeforeMs: retryAtMs };
  return { type: kind };
}

function aContainer(name: string, change: Partial<PodContainer> = {}): PodContainer {
  return {
    name,
    image: "app:1",
    pullPolicy: "IfNotPresent",
    command: [],
    args: [],
    env: [],
    ports: [],
    ...change,
  };
}

function running(id: string, attempt: number): ObservedContainer {
  return { id, container: "main", attempt, specHash: "hash", state: "running" };
}

function exited(id: string, attempt: number): ObservedContainer {
  return { ...running(id, attempt), state: "exited", exitCode: 1 };
}

function unknown(id: string, unknownSinceMs: number): ObservedContainer {
  return { ...running(id, 1), state: "unknown", unknownSinceMs };
}

function well(memory: ContainerMemory): ContainerMemory {
  const { lastTermination } = memory;
  return lastTermination === undefined
    ? memory
    : { ...memory, lastTermination: { ...lastTermination, exitCode: 0, reason: "Completed" } };
}
