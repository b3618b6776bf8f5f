import { withLinkedSignal } from "@forage/common/link-signals";
import { DeviceError } from "../../devices/devices.ts";
import { addressesOf } from "../../network/network.ts";
import { type ContainerSpec, type HostDevice, RuntimeError } from "../../runtime/runtime.ts";
import { type VolumeBind, VolumeError, type VolumeErrorCode } from "../../volumes/volumes.ts";
import { ended, started } from "../container-memory.ts";
import {
  ATTEMPT_LABEL,
  CONTAINER_LABEL,
  containerName,
  POD_NAME_LABEL,
  POD_NAMESPACE_LABEL,
  POD_UID_LABEL,
  SPEC_HASH_LABEL,
} from "../container-name.ts";
import type { PodView } from "../decide/pod-view.ts";
import { memoryOf, type PodContainer, type PodMemory, type Termination, withContainer } from "../pod.ts";
import { allContainers, type ContainerRole, roleOf } from "../pod-containers.ts";
import type { PodDependencies } from "../pod-dependencies.ts";
import { separateStreams } from "../separate-streams.ts";
import { StartBlockedError, type StepContext, type StepEffect } from "../step-context.ts";
import { resolveContainer } from "./resolve-container.ts";

/** Starts a new attempt. Errors caused by the container itself count as a crash; all others reject. */
export function startContainer(
  dependencies: PodDependencies,
  context: StepContext,
  container: string,
  attempt: number,
): Promise<StepEffect> {
  return withLinkedSignal([context.signal, context.goalSignal], (bothSignals) =>
    start(dependencies, context, { container, attempt, bothSignals }),
  );
}

async function start(
  dependencies: PodDependencies,
  { view, signal }: StepContext,
  {
    container,
    attempt,
    bothSignals,
  }: { readonly container: string; readonly attempt: number; readonly bothSignals: AbortSignal },
): Promise<StepEffect> {
  const { pod } = view;
  const spec = allContainers(pod).find((it) => it.name === container);
  if (spec === undefined || view.memory.sandbox === undefined) return {};
  assertRoom(dependencies, view);
  const binds = await bindVolumes(dependencies, view, spec, bothSignals);
  try {
    const id = await dependencies.startGate.run(bothSignals, () =>
      runContainer(dependencies, view, { spec, attempt, binds }, signal),
    );
    const nowMs = dependencies.clock.nowMs();
    const { specHash } = pod;
    const observed = { id, container, attempt, specHash, state: "running", startedAtMs: nowMs } as const;
    dependencies.observer.noteStarted(pod.uid, spec.image, observed);
    return {
      change: (memory) => {
        const next = started(memoryOf(memory, container), attempt, id, nowMs);
        return withBegun(withContainer(memory, container, next), roleOf(pod, container));
      },
      volumesShown: pod.volumes,
    };
  } catch (error) {
    if (!(error instanceof RuntimeError)) throw error;
    if (error.code === "IMAGE_NOT_FOUND") dependencies.images.forget(spec.image);
    if (error.code !== "START_FAILED" && error.code !== "IMAGE_INVALID") throw error;
    // The error is the container's fault, not the host's, so it counts as a crash. The next listing shows what is left
    // of the container.
    await dependencies.observer.refresh().catch(() => undefined);
    const termination = startError(error, dependencies.clock.nowMs());
    return { change: (memory) => notStarted(dependencies, memory, container, attempt, termination) };
  }
}

/** Refuses a first start on a full disk. Containers that have run here restart, because a restart needs no further room. */
function assertRoom({ host }: PodDependencies, { memory }: PodView): void {
  if (Object.values(memory.containers).some(({ attempt }) => attempt > 0)) return;
  const pressure = host.diskPressure?.();
  if (pressure !== undefined) throw new StartBlockedError("DiskPressure", pressure);
}

/** Returns the pod's memory after a container of this role has started. */
export function withBegun(memory: PodMemory, role: ContainerRole | undefined): PodMemory {
  if (role === "main") return { ...memory, begun: "main" };
  return role === "sidecar" && memory.begun === undefined ? { ...memory, begun: "sidecars" } : memory;
}

function notStarted(
  dependencies: PodDependencies,
  memory: PodMemory,
  container: string,
  attempt: number,
  termination: Termination,
): PodMemory {
  const before = memoryOf(memory, container);
  const failed = { ...before, attempt, restarts: before.restarts + (before.lastTermination ? 1 : 0) };
  return withContainer(memory, container, ended(failed, termination, dependencies.restartLimits));
}

function startError({ message }: RuntimeError, nowMs: number): Termination {
  return {
    exitCode: 128,
    signal: 0,
    reason: "StartError",
    message,
    startedAtMs: nowMs,
    finishedAtMs: nowMs,
  };
}

// Errors that the user can fix in the pod's references. All other errors come from the host or a server.
const CONFIG_ERRORS: readonly VolumeErrorCode[] = ["INVALID", "SOURCE_MISSING", "WRONG_TYPE", "ESCAPES"];

async function bindVolumes(
  dependencies: PodDependencies,
  { pod }: PodView,
  { name, mounts = [] }: PodContainer,
  signal: AbortSignal,
): Promise<readonly VolumeBind[]> {
  if (pod.volumes === undefined || pod.volumes.volumes.length === 0) return [];
  try {
    await dependencies.volumes.prepare(pod.volumes, signal);
    return mounts.length === 0 ? [] : await dependencies.volumes.binds(pod.uid, name, mounts, signal);
  } catch (cause) {
    if (!(cause instanceof VolumeError)) throw cause;
    const reason = CONFIG_ERRORS.includes(cause.code) ? "CreateContainerConfigError" : "FailedMount";
    throw new StartBlockedError(reason, cause.message, { cause });
  }
}

async function assignDevices(
  { devices }: PodDependencies,
  { pod }: PodView,
  { name, extended = {} }: PodContainer,
): Promise<readonly HostDevice[]> {
  try {
    return await devices.allocate(pod.uid, {
      container: name,
      init: roleOf(pod, name) === "init",
      desired: extended,
    });
  } catch (cause) {
    if (!(cause instanceof DeviceError)) throw cause;
    throw new StartBlockedError("CreateContainerConfigError", cause.message, { cause });
  }
}

interface Attempt {
  readonly spec: PodContainer;
  readonly attempt: number;
  readonly binds: readonly VolumeBind[];
}

async function runContainer(
  dependencies: PodDependencies,
  view: PodView,
  { spec, attempt, binds }: Attempt,
  signal: AbortSignal,
): Promise<string> {
  const { pod } = view;
  const podIps = view.memory.sandbox === undefined ? [] : addressesOf(view.memory.sandbox);
  const resolved = resolveContainer(pod, spec, {
    nodeName: dependencies.host.nodeName,
    podIps,
    hostIps: dependencies.host.addresses,
    allocatable: dependencies.host.allocatable(),
  });
  if ("missing" in resolved) throw new StartBlockedError("CreateContainerConfigError", resolved.missing);
  const devices = await assignDevices(dependencies, view, spec);
  const apart = separateStreams(pod, spec, dependencies.host.separateStreams ?? false);
  const { logFile, streamPipes } = await dependencies.files.prepare(pod.uid, spec.name, attempt, apart);
  const networkBinds = await dependencies.networkFiles.binds(pod, spec, podIps);
  const name = containerName(dependencies.instance, { podUid: pod.uid, container: spec.name, attempt });
  const { id } = await dependencies.runtime.run(
    {
      name,
      labels: {
        [POD_UID_LABEL]: pod.uid,
        [POD_NAME_LABEL]: pod.name,
        [POD_NAMESPACE_LABEL]: pod.namespace,
        [CONTAINER_LABEL]: spec.name,
        [ATTEMPT_LABEL]: String(attempt),
        [SPEC_HASH_LABEL]: pod.specHash,
      },
      image: spec.image,
      ...resolved,
      networkNamespace: view.memory.sandbox?.namespacePath ?? "",
      hostname: pod.hostname,
      // These mounts come after the volumes, because a volume may be mounted over their parent directory.
      binds: [...binds, ...networkBinds],
      ...(devices.length > 0 && { devices }),
      logFile,
      ...(streamPipes && { streamPipes }),
      ...asGiven(spec),
    },
    signal,
  );
  return id;
}

type Given = Pick<
  ContainerSpec,
  | "workingDir"
  | "cpuLimitMilli"
  | "memoryLimitBytes"
  | "cpuShares"
  | "user"
  | "security"
  | "stdin"
  | "tty"
  | "ociRuntime"
  | "rootLimitBytes"
>;

/** Returns the settings that pass from the pod to the runtime unchanged. */
function asGiven(spec: PodContainer): Given {
  const { workingDir, cpuLimitMilli, memoryLimitBytes, cpuShares, user, security } = spec;
  const { stdin, tty, ociRuntime, rootLimitBytes } = spec;
  return {
    ...(workingDir !== undefined && { workingDir }),
    ...(cpuLimitMilli !== undefined && { cpuLimitMilli }),
    ...(memoryLimitBytes !== undefined && { memoryLimitBytes }),
    ...(cpuShares !== undefined && { cpuShares }),
    ...(user && { user }),
    ...(security && { security }),
    ...(stdin !== undefined && { stdin }),
    ...(tty !== undefined && { tty }),
    ...(ociRuntime !== undefined && { ociRuntime }),
    ...(rootLimitBytes !== undefined && { rootLimitBytes }),
  };
}
