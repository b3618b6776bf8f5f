import type { Pod, PodContainer, RestartPolicy } from "./pod.ts";

export type ContainerRole = "init" | "sidecar" | "main";

const NONE: readonly PodContainer[] = [];

export function initContainersOf(pod: Pod): readonly PodContainer[] {
  return pod.initContainers ?? NONE;
}

/** Returns the pod's containers, init containers first. */
export function allContainers(pod: Pod): readonly PodContainer[] {
  return [...initContainersOf(pod), ...pod.containers];
}

export function mainOf(pod: Pod): PodContainer | undefined {
  return pod.containers.at(-1);
}

export function sidecarsOf(pod: Pod): readonly PodContainer[] {
  return pod.containers.slice(0, -1);
}

/** Returns the container's role, or undefined if the pod has no such container. */
export function roleOf(pod: Pod, container: string): ContainerRole | undefined {
  if (initContainersOf(pod).some(({ name }) => name === container)) return "init";
  if (mainOf(pod)?.name === container) return "main";
  return pod.containers.some(({ name }) => name === container) ? "sidecar" : undefined;
}

/**
 * Returns the restart policy of a container, as in Kubernetes: a sidecar always restarts while its pod runs, and an
 * init container runs until it has succeeded.
 */
export function policyOf(pod: Pod, container: string): RestartPolicy {
  switch (roleOf(pod, container)) {
    case "sidecar":
      return "Always";
    case "init":
      return pod.restartPolicy === "Never" ? "Never" : "OnFailure";
    default:
      return pod.restartPolicy;
  }
}
