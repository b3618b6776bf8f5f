import type { PortMapping } from "../network/network.ts";
import { RuntimeError } from "../runtime/runtime.ts";
import { adopted, ended, started } from "./container-memory.ts";
import {
  ATTEMPT_LABEL,
  CONTAINER_LABEL,
  containerName,
  POD_NAME_LABEL,
  POD_NAMESPACE_LABEL,
  POD_UID_LABEL,
  SPEC_HASH_LABEL,
} from "./container-name.ts";
import type { PodView } from "./next-step.ts";
import {
  type ContainerMemory,
  memoryOf,
  type ObservedContainer,
  type PodContainer,
  type PodMemory,
  type Termination,
  withContainer,
} from "./pod.ts";
import type { PodWorld } from "./pod-world.ts";
import { resolveContainer } from "./resolve-container.ts";
import type { Step } from "./step.ts";

/** What a step changed, apart from what the observer and the image store know by themselves. */
export interface StepEffect {
  readonly memory?: PodMemory;
  /** The memory must be on disk before the next step relies on it. */
  readonly durable?: true;
  readonly published?: boolean;
  /** The runtime's list was read. */
  readonly looked?: true;
}

export interface StepContext {
  readonly view: PodView;
  /** Aborts when the agent stops. */
  readonly signal: AbortSignal;
  /** Aborts when the pod is no longer to run: what has not begun need not begin. */
  readonly goalSignal: AbortSignal;
}

/** Does one step. Rejects if it failed or its outcome is not known. */
export async function runStep(world: PodWorld, step: Step, context: StepContext): Promise<StepEffect> {
  const { view, signal } = context;
  const uid = view.pod.uid;
  switch (step.kind) {
    case "look":
      await world.observer.refresh();
      return { looked: true };
    case "fetchImage":
      world.images.fetch(step.image, step.policy);
      return {};
    case "attachSandbox": {
      const sandbox = await world.network.attach(uid, signal);
      // A container in a namespace that the next agent doesn't know of would have to be ended.
      return { memory: { ...view.memory, sandbox }, durable: true, published: false };
    }
    case "allocatePorts":
      return { memory: { ...view.memory, ports: await allocatePorts(world, view) } };
    case "publishPorts":
      return publishPorts(world, context);
    case "adopt":
      return { memory: adopt(world, view, step.container, step.id) };
    case "recordExit":
      return { memory: await recordExit(world, context, step.container, step.id) };
    case "startContainer":
      return startContainer(world, context, step.container, step.attempt);
    case "stopContainers":
      await Promise.all(step.ids.map((id) => stop(world, id, step.graceMs, signal)));
      return {};
    case "removeContainers":
      await world.stopGate.pass(signal, () => world.runtime.remove(step.ids, signal));
      world.observer.noteRemoved(step.ids);
      return {};
    case "cleanUp":
      await world.network.detach(uid, signal);
      await world.files.remove(uid);
      return { memory: { containers: {}, removed: true }, published: false };
    default:
      return step satisfies never;
  }
}

async function allocatePorts(world: PodWorld, { pod }: PodView): Promise<readonly PortMapping[]> {
  const wanted = pod.containers.flatMap((it) => it.ports);
  return wanted.length === 0 ? [] : world.network.allocatePorts(pod.uid, wanted);
}

async function publishPorts(world: PodWorld, { view, signal }: StepContext): Promise<StepEffect> {
  const { sandbox, ports = [] } = view.memory;
  if (sandbox === undefined) return {};
  if (ports.length > 0) await world.network.publish(sandbox, ports, signal);
  return { published: true };
}

function adopt(world: PodWorld, view: PodView, container: string, id: string): PodMemory {
  const found = view.containers.find((it) => it.id === id);
  const spec = view.pod.containers.find((it) => it.name === container);
  if (found === undefined || spec === undefined) return view.memory;
  world.images.seen(spec.image);
  const memory = adopted(memoryOf(view.memory, container), found, world.clock.nowMs());
  return withContainer(view.memory, container, memory);
}

// A stop takes as long as the grace period, so it must not hold a place that others wait for; the call itself is cheap.
async function stop(world: PodWorld, id: string, graceMs: number, signal: AbortSignal): Promise<void> {
  await world.runtime.stop(id, graceMs, signal);
  world.observer.noteStopped([id]);
}

async function recordExit(
  world: PodWorld,
  { view, signal }: StepContext,
  container: string,
  id: string | undefined,
): Promise<PodMemory> {
  const memory = memoryOf(view.memory, container);
  const seen = view.containers.find((it) => it.id === id);
  const known =
    seen?.exitCode === undefined && id !== undefined ? await inspect(world, id, signal) : undefined;
  const message = await world.files.lastLines(view.pod.uid, container, memory.attempt);
  const termination = terminationOf(memory, { ...seen, ...known }, message, world.clock.nowMs());
  return withContainer(view.memory, container, ended(memory, termination, world.restartLimits));
}

async function inspect(
  world: PodWorld,
  id: string,
  signal: AbortSignal,
): Promise<Partial<ObservedContainer>> {
  const found = await world.runtime.inspect(id, signal);
  return {
    ...(found?.exitCode === undefined ? {} : { exitCode: found.exitCode }),
    ...(found?.finishedAtMs === undefined ? {} : { finishedAtMs: found.finishedAtMs }),
  };
}

function terminationOf(
  memory: ContainerMemory,
  seen: Partial<ObservedContainer>,
  lastLines: string,
  nowMs: number,
): Termination {
  const finishedAtMs = Math.min(seen.finishedAtMs ?? nowMs, nowMs);
  const times = { startedAtMs: Math.min(memory.startedAtMs ?? finishedAtMs, finishedAtMs), finishedAtMs };
  if (seen.exitCode === undefined) {
    const message = "the container was removed by someone else";
    return { exitCode: 255, signal: 0, reason: "Vanished", message, ...times };
  }
  const exitCode = seen.exitCode;
  // By the shells' convention; 64 is the highest signal there is.
  const signal = exitCode > 128 && exitCode <= 128 + 64 ? exitCode - 128 : 0;
  const reason = seen.oomKilled === true ? "OOMKilled" : exitCode === 0 ? "Completed" : "Error";
  return { exitCode, signal, reason, message: lastLines, ...times };
}

async function startContainer(
  world: PodWorld,
  context: StepContext,
  container: string,
  attempt: number,
): Promise<StepEffect> {
  const { view, signal, goalSignal } = context;
  const { pod, memory } = view;
  const spec = pod.containers.find((it) => it.name === container);
  if (spec === undefined || memory.sandbox === undefined) return {};
  const before = memoryOf(memory, container);
  const { namespacePath } = memory.sandbox;
  try {
    const id = await world.startGate.pass(AbortSignal.any([signal, goalSignal]), () =>
      runContainer(world, view, spec, attempt, namespacePath, signal),
    );
    const nowMs = world.clock.nowMs();
    const specHash = pod.specHash;
    const observed = { id, container, attempt, specHash, state: "running", startedAtMs: nowMs } as const;
    world.observer.noteStarted(pod.uid, spec.image, observed);
    return { memory: withContainer(memory, container, started(before, attempt, id, nowMs)) };
  } catch (error) {
    if (!(error instanceof RuntimeError)) throw error;
    if (error.code === "IMAGE_NOT_FOUND") world.images.forget(spec.image);
    if (error.code !== "START_FAILED" && error.code !== "IMAGE_INVALID") throw error;
    // Its own fault, not the host's: it counts as a crash. What may be left of it is seen by the next look.
    await world.observer.refresh().catch(() => undefined);
    const nowMs = world.clock.nowMs();
    const termination: Termination = {
      exitCode: 128,
      signal: 0,
      reason: "StartError",
      message: error.message,
      startedAtMs: nowMs,
      finishedAtMs: nowMs,
    };
    const failed = { ...before, attempt, restarts: before.restarts + (before.lastTermination ? 1 : 0) };
    return { memory: withContainer(memory, container, ended(failed, termination, world.restartLimits)) };
  }
}

async function runContainer(
  world: PodWorld,
  view: PodView,
  spec: PodContainer,
  attempt: number,
  networkNamespace: string,
  signal: AbortSignal,
): Promise<string> {
  const { pod } = view;
  const resolved = resolveContainer(pod, spec, {
    nodeName: "",
    podIp: view.memory.sandbox?.address ?? "",
    hostIp: "",
    allocatable: {},
  });
  if ("missing" in resolved) throw new Error(resolved.missing);
  const { logFile } = await world.files.prepare(pod.uid, spec.name, attempt);
  const { id } = await world.runtime.run(
    {
      name: containerName(world.instance, { podUid: pod.uid, container: spec.name, attempt }),
      labels: {
        [POD_UID_LABEL]: pod.uid,
        [POD_NAME_LABEL]: pod.name,
        [POD_NAMESPACE_LABEL]: pod.namespace,
        [CONTAINER_LABEL]: spec.name,
        [ATTEMPT_LABEL]: String(attempt),
        [SPEC_HASH_LABEL]: pod.specHash,
      },
      image: spec.image,
      command: resolved.command,
      args: resolved.args,
      env: resolved.env,
      ...(spec.workingDir === undefined ? {} : { workingDir: spec.workingDir }),
      networkNamespace,
      hostname: pod.hostname,
      binds: [],
      ...(spec.cpuLimitMilli === undefined ? {} : { cpuLimitMilli: spec.cpuLimitMilli }),
      ...(spec.memoryLimitBytes === undefined ? {} : { memoryLimitBytes: spec.memoryLimitBytes }),
      ...(spec.cpuShares === undefined ? {} : { cpuShares: spec.cpuShares }),
      logFile,
    },
    signal,
  );
  return id;
}
