import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProbeVerdict } from "../../probes/probe-machine.ts";
import type {
  ContainerMemory,
  ObservedContainer,
  Pod,
  PodContainer,
  PodMemory,
  Termination,
} from "../pod.ts";
import { nextStep } from "./next-step.ts";
import { outcomeOf, type PodView } from "./pod-view.ts";

const NOW = 1_000_000;
const LIMITS = { baseMs: 10_000, capMs: 300_000, goodRunMs: 600_000 };
const SANDBOX = { podUid: "p", namespacePath: "/run/netns/p", address: "10.0.0.2" };
const WAIT = { type: "wait" };
const HOOK = { type: "exec", command: ["hook"] } as const;
const STARTUP = { startup: aProbe() };
const CAUSE = { reason: "LivenessProbeFailed", message: "liveness probe failed" } as const;

const DONE = { phase: "ended", lastTermination: anEnd(0) } as const;
const FAILED = { phase: "ended", lastTermination: anEnd(1) } as const;

const CASES: readonly (readonly [string, Shape, unknown])[] = [
  ["the first init container begins", { init: [{}, {}] }, aStart("init0")],
  ["while it runs nothing else begins", { init: [{ id: "i" }, {}] }, WAIT],
  ["then the second", { init: [DONE, {}] }, aStart("init1")],
  ["then sidecars", { init: [DONE, DONE], side: {} }, aStart("side")],
  ["one that failed runs again", { init: [FAILED], policy: "Always" }, aStart("init0", 2)],
  ["under OnFailure too", { init: [FAILED], policy: "OnFailure" }, aStart("init0", 2)],
  ["under Never that was it", { init: [FAILED], policy: "Never" }, WAIT],
  [
    "what is left of one that is done goes, but nothing waits for that",
    { init: [{ ...DONE, dead: "i" }], main: { id: "m" }, begun: "main" },
    { type: "removeContainers", ids: ["i"] },
  ],
  ["once others have begun none runs again", { init: [{}], begun: "main" }, aStart("main")],
  [
    "nor if one is seen to run whose start was not written down",
    { init: [{}], main: { id: "m", phase: "new" } },
    anAdoption("main", "m"),
  ],
  [
    "before they run again in a new namespace it is noted how the others ended",
    { init: [{}], main: { phase: "started", containerId: "gone" } },
    { type: "recordExit", container: "main" },
  ],
  ["the first start waits for all images", { init: [{}], missingImage: "main" }, WAIT],
  [
    "a later one only for its own",
    { main: FAILED, side: { id: "s" }, begun: "main", missingImage: "side" },
    aStart("main", 2),
  ],

  [
    "the main container waits for a sidecar to run",
    { side: { phase: "new", notBeforeMs: NOW + 5 } },
    { type: "wait", untilMs: NOW + 5 },
  ],
  ["and begins beside it", { side: { id: "s" } }, aStart("main")],
  [
    "it waits for its startup probe",
    { side: { id: "s", probes: STARTUP, verdict: { started: false, ready: false } } },
    WAIT,
  ],
  [
    "which may have passed",
    { side: { id: "s", probes: STARTUP, verdict: { started: true, ready: false } } },
    aStart("main"),
  ],
  [
    "before this agent too",
    { side: { id: "s", probes: STARTUP, health: { started: true, ready: false } } },
    aStart("main"),
  ],
  [
    "it waits for its hook",
    { side: { id: "s", hooks: { postStart: HOOK }, postStart: "begun" }, underWay: ["postStart/s"] },
    WAIT,
  ],
  [
    "it doesn't wait when it starts again",
    { side: { ...FAILED, notBeforeMs: NOW + 5 }, main: FAILED, begun: "main" },
    aStart("main", 2),
  ],
  [
    "a sidecar that ended well runs again",
    { side: DONE, main: { id: "m" }, policy: "OnFailure", begun: "main" },
    aStart("side", 2),
  ],
  [
    "until the main container has ended for good",
    { side: { id: "s" }, main: DONE, policy: "OnFailure", begun: "main" },
    aStop("side", "s"),
  ],
  [
    "then it is noted how it ended",
    { side: { phase: "started", containerId: "s", dead: "s" }, main: DONE, policy: "Never", begun: "main" },
    { type: "recordExit", container: "side", id: "s" },
  ],

  [
    "a hook runs once its container runs",
    { main: { id: "m", hooks: { postStart: HOOK } } },
    { type: "postStart", container: "main", id: "m" },
  ],
  ["not twice", { main: { id: "m", hooks: { postStart: HOOK }, postStart: "done" } }, WAIT],
  [
    "if its outcome is unknown the container is restarted",
    { main: { id: "m", hooks: { postStart: HOOK }, postStart: "begun" } },
    aStop("main", "m", {
      cause: {
        reason: "PostStartHookError",
        message: "the agent was restarted while the post_start hook ran, so what it has done is not known",
      },
    }),
  ],
  [
    "where it can't start over it is left",
    { main: { id: "m", hooks: { postStart: HOOK }, postStart: "begun" }, policy: "Never" },
    WAIT,
  ],
  [
    "one that is found broken is ended",
    { main: { id: "m", verdict: { started: true, ready: false, restart: CAUSE.message } } },
    aStop("main", "m", { cause: CAUSE }),
  ],
  [
    "also when it never came up",
    { main: { id: "m", verdict: { started: false, ready: false, restart: "startup probe failed" } } },
    aStop("main", "m", { cause: { reason: "StartupProbeFailed", message: "startup probe failed" } }),
  ],
  [
    "a stop that was begun continues with the remaining time",
    { main: { id: "m", stop: { sinceMs: NOW - 2_000, cause: CAUSE } } },
    aStop("main", "m", { graceMs: 3_000 }),
  ],
  [
    "and with some time in any case",
    { main: { id: "m", stop: { sinceMs: NOW - 60_000 } } },
    aStop("main", "m", { graceMs: 2_000 }),
  ],
  [
    "other containers are handled while it continues",
    { main: { id: "m", stop: { sinceMs: NOW } }, underWay: ["stopContainer/m"], side: {}, begun: "main" },
    aStart("side"),
  ],
  [
    "one that was ended for being broken runs again, however it left",
    {
      main: { phase: "ended", lastTermination: { ...anEnd(0), ...CAUSE } },
      policy: "OnFailure",
      begun: "main",
    },
    aStart("main", 2),
  ],

  [
    "changed contents are shown to what runs",
    { main: { id: "m" }, outdated: true },
    { type: "updateVolumes" },
  ],
  ["an evicted pod ends", { main: { id: "m" }, side: { id: "s" }, evicted: true }, aStop("main", "m")],
  ["its sidecars last", { main: { ...FAILED }, side: { id: "s" }, evicted: true }, aStop("side", "s")],
  ["and nothing of it starts again", { main: { ...FAILED }, side: FAILED, evicted: true }, WAIT],
  [
    "a removed pod's init container is ended too",
    { init: [{ id: "i" }], goal: "remove" },
    aStop("init0", "i"),
  ],
  [
    "what may turn up late is waited for before anything is taken away",
    { goal: "remove", startUncertainUntilMs: NOW + 9 },
    { type: "wait", untilMs: NOW + 9 },
  ],
  ["and looked for", { goal: "remove", startUncertainUntilMs: NOW }, { type: "inspect" }],
];

for (const [name, shape, expected] of CASES) {
  test(name, () => {
    const decision = nextStep(aView(shape), LIMITS);
    assert.deepEqual(decision.type === "step" ? decision.step : decision, expected);
  });
}

function aStart(container: string, attempt = 1) {
  return { type: "startContainer", container, attempt };
}

function aStop(container: string, id: string, change: object = {}) {
  return { type: "stopContainer", container, id, graceMs: 5_000, ...change };
}

function anAdoption(container: string, id: string) {
  return { type: "adopt", container, id };
}

function anEnd(exitCode: number): Termination {
  return { exitCode, signal: 0, reason: "Error", message: "", startedAtMs: 0, finishedAtMs: 0 };
}

function aProbe() {
  const handler = { type: "exec", command: ["up"] } as const;
  return { handler, initialDelayMs: 0, periodMs: 1, timeoutMs: 1, successThreshold: 1, failureThreshold: 1 };
}

/** A container and its memory. `id` is the id of a running container, `dead` that of a container that has ended. */
type ContainerShape = Partial<ContainerMemory> &
  Pick<PodContainer, "hooks" | "probes"> & {
    readonly id?: string;
    readonly dead?: string;
    readonly verdict?: ProbeVerdict;
  };

interface Shape {
  readonly init?: readonly ContainerShape[];
  readonly side?: ContainerShape;
  readonly main?: ContainerShape;
  readonly policy?: Pod["restartPolicy"];
  readonly begun?: "sidecars" | "main";
  readonly missingImage?: string;
  readonly underWay?: readonly string[];
  readonly outdated?: boolean;
  readonly evicted?: boolean;
  readonly goal?: PodView["goal"];
  readonly startUncertainUntilMs?: number;
}

/** Returns a pod whose network and images are present, and whose memory is on disk. */
function aView(shape: Shape): PodView {
  const view = anUnsavedView(shape);
  return { ...view, savedOutcome: outcomeOf(view) };
}

function anUnsavedView(shape: Shape): PodView {
  const { init = [], side, main = {}, goal = "run", startUncertainUntilMs } = shape;
  const inits = init.map((it, at) => [`init${at}`, it] as const);
  const others = [...(side === undefined ? [] : [["side", side] as const]), ["main", main] as const];
  const all = [...inits, ...others];
  const memory: PodMemory = {
    sandbox: SANDBOX,
    ports: [],
    containers: Object.fromEntries(all.map(([name, it]) => [name, aMemory(it)])),
    ...(shape.begun && { begun: shape.begun }),
    ...(shape.evicted && { failure: { reason: "Evicted", message: "too much" } }),
    removed: false,
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
      restartPolicy: shape.policy ?? "Always",
      initContainers: inits.map(([name, it]) => aContainer(name, it)),
      containers: others.map(([name, it]) => aContainer(name, it)),
    },
    goal,
    ...(goal === "remove" && { stoppingSinceMs: NOW }),
    ...(startUncertainUntilMs !== undefined && { startUncertainUntilMs }),
    containers: all.flatMap(([name, it]) => [
      ...observed(name, it.id, "running"),
      ...observed(name, it.dead, "exited"),
    ]),
    stale: false,
    published: true,
    volumesOutdated: shape.outdated ?? false,
    images: new Map(
      all.map(([name]) => [
        name,
        { type: name === shape.missingImage ? "fetching" : "present", pulling: false },
      ]),
    ),
    verdicts: new Map(all.flatMap(([, { id, verdict }]) => (id && verdict ? [[id, verdict]] : []))),
    memory,
    savedOutcome: undefined,
    faults: new Map(),
    underWay: new Set(shape.underWay),
    nowMs: NOW,
    monotonicMs: NOW,
  };
}

function aMemory(shape: ContainerShape): ContainerMemory {
  const { id, dead: _, verdict: _v, hooks: _h, probes: _p, ...given } = shape;
  const phase = given.phase ?? (id === undefined ? "new" : "started");
  return {
    attempt: phase === "new" ? 0 : 1,
    phase,
    restarts: 0,
    crashes: 0,
    notBeforeMs: 0,
    ...(id !== undefined && phase === "started" && { containerId: id }),
    ...given,
  };
}

function observed(
  container: string,
  id: string | undefined,
  state: "running" | "exited",
): ObservedContainer[] {
  return id === undefined ? [] : [{ id, container, attempt: 1, specHash: "hash", state }];
}

function aContainer(name: string, { hooks, probes }: ContainerShape): PodContainer {
  return {
    name,
    image: "app:1",
    pullPolicy: "IfNotPresent",
    command: [],
    args: [],
    env: [],
    ports: [],
    ...(hooks && { hooks }),
    ...(probes && { probes }),
  };
}
