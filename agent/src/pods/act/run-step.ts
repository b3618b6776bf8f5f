import type { PodSandbox, PortMapping, PortRequest } from "../../network/network.ts";
import { HOST_NETWORK } from "../../runtime/runtime.ts";
import { adopted, inNewSandbox } from "../container-memory.ts";
import { isLive, outcomeOf } from "../decide/pod-view.ts";
import { type ContainerMemory, memoryOf, type Pod, type PodMemory, withContainer } from "../pod.ts";
import { allContainers, initContainersOf, roleOf } from "../pod-containers.ts";
import type { PodDependencies } from "../pod-dependencies.ts";
import { firstPorts } from "../pod-ports.ts";
import type { Step } from "../step.ts";
import type { StepContext, StepEffect } from "../step-context.ts";
import { postStart } from "./post-start.ts";
import { recordExit } from "./record-exit.ts";
import { startContainer, withBegun } from "./start-container.ts";
import { stopContainer } from "./stop-container.ts";

/** Executes one step. Rejects if the step failed or its outcome is unknown. */
export async function runStep(
  dependencies: PodDependencies,
  step: Step,
  context: StepContext,
): Promise<StepEffect> {
  const { view, signal } = context;
  const uid = view.pod.uid;
  switch (step.type) {
    case "inspect":
      await dependencies.observer.refresh();
      return { looked: true };
    case "fetchImage":
      dependencies.images.fetch(step.image, step.policy, view.pod);
      return {};
    case "attachSandbox":
      return attachSandbox(dependencies, context);
    case "allocatePorts":
      return allocatePorts(dependencies, context);
    case "publishPorts":
      return publishPorts(dependencies, context);
    case "updatePorts":
      return updatePorts(dependencies, context, step.ports);
    case "updateVolumes":
      if (view.pod.volumes !== undefined) await dependencies.volumes.update(view.pod.volumes, signal);
      return { volumesShown: view.pod.volumes };
    case "adopt":
      return adopt(dependencies, context, step.container, step.id);
    case "recordExit": {
      const effect = await recordExit(dependencies, context, step.container, step.id);
      const after = { ...view, memory: effect.change?.(view.memory) ?? view.memory };
      if (outcomeOf(after) === undefined) return effect;
      // A finished pod is kept for its logs, which need no device.
      if (!view.containers.some(isLive)) await dependencies.devices.release(uid);
      return { ...effect, durable: true };
    }
    case "saveOutcome":
      await dependencies.events.over(uid, view.memory);
      return { savedOutcome: outcomeOf(view) };
    case "startContainer":
      return startContainer(dependencies, context, step.container, step.attempt);
    case "postStart":
      return postStart(dependencies, context, step.container, step.id);
    case "stopContainer":
      return stopContainer(dependencies, context, step);
    case "removeContainers":
      await dependencies.stopGate.run(signal, () => dependencies.runtime.remove(step.ids, signal));
      dependencies.observer.noteRemoved(step.ids);
      return {};
    case "cleanUp":
      // The containers are gone, so nothing uses these resources any more.
      await dependencies.volumes.release(uid, signal);
      await dependencies.network.detach(uid, signal);
      await dependencies.devices.release(uid);
      await dependencies.files.remove(uid, view.pod.keepLogsMs);
      return { change: () => ({ containers: {}, removed: true }), final: true, published: false };
    default:
      return step satisfies never;
  }
}

async function attachSandbox(
  dependencies: PodDependencies,
  { view, signal }: StepContext,
): Promise<StepEffect> {
  const { pod } = view;
  const sandbox =
    pod.network?.hostNetwork === true
      ? hostSandbox(pod.uid, dependencies.host.addresses)
      : await dependencies.network.attach(pod.uid, signal);
  const inits = initContainersOf(pod).map(({ name }) => name);
  return {
    change: (memory) => ({ ...inNewSandbox(memory, inits, view.containers), sandbox }),
    // The next agent would have to stop the containers in a namespace that is not recorded.
    durable: true,
    published: false,
  };
}

/** Returns the sandbox of a pod on the host's own network. The first address is the preferred one. */
export function hostSandbox(podUid: string, [address = "", address6]: readonly string[]): PodSandbox {
  return {
    podUid,
    namespacePath: HOST_NETWORK,
    address,
    ...(address6 !== undefined && { address6 }),
  };
}

async function allocatePorts(dependencies: PodDependencies, { view }: StepContext): Promise<StepEffect> {
  const { pod } = view;
  const desired = firstPorts(pod);
  if (desired.length === 0) return { change: (memory) => ({ ...memory, ports: [] }) };
  const ports = await obtainPorts(dependencies, pod, desired);
  return { change: (memory) => ({ ...memory, ports }) };
}

function obtainPorts(
  { network }: PodDependencies,
  { uid, network: spec }: Pod,
  desired: readonly PortRequest[],
): Promise<readonly PortMapping[]> {
  return spec?.hostNetwork === true
    ? network.acquireHostPorts(uid, desired)
    : network.allocatePorts(uid, desired);
}

/** Publishes the added ports before recording them. No client uses them before the pod's status names them. */
async function updatePorts(
  dependencies: PodDependencies,
  { view, signal }: StepContext,
  desired: readonly PortRequest[],
): Promise<StepEffect> {
  const { sandbox } = view.memory;
  if (sandbox === undefined) return {};
  const ports = await obtainPorts(dependencies, view.pod, desired);
  if (sandbox.namespacePath !== HOST_NETWORK) await dependencies.network.publish(sandbox, ports, signal);
  dependencies.network.keepPorts(view.pod.uid, ports);
  return { change: (memory) => ({ ...memory, ports }) };
}

async function publishPorts(
  dependencies: PodDependencies,
  { view, signal }: StepContext,
): Promise<StepEffect> {
  const { sandbox, ports = [] } = view.memory;
  if (sandbox === undefined) return {};
  if (ports.length > 0 && sandbox.namespacePath !== HOST_NETWORK) {
    await dependencies.network.publish(sandbox, ports, signal);
  }
  return { published: true };
}

function adopt(
  dependencies: PodDependencies,
  { view }: StepContext,
  container: string,
  id: string,
): StepEffect {
  const { pod } = view;
  const found = view.containers.find((it) => it.id === id);
  const spec = allContainers(pod).find((it) => it.name === container);
  if (found === undefined || spec === undefined) return {};
  dependencies.images.seen(spec.image, view.pod);
  const nowMs = dependencies.clock.nowMs();
  return {
    change: (memory) => {
      const adoptedMemory = withMemory(memory, container, (old) => adopted(old, found, nowMs));
      // A container that has ended may have run in an earlier namespace, whose init containers don't count.
      return isLive(found) ? withBegun(adoptedMemory, roleOf(pod, container)) : adoptedMemory;
    },
  };
}

function withMemory(
  memory: PodMemory,
  container: string,
  change: (memory: ContainerMemory) => ContainerMemory,
): PodMemory {
  return withContainer(memory, container, change(memoryOf(memory, container)));
}
