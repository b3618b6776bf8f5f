import type { RuntimeContainer } from "../runtime/runtime.ts";
import type { ObservedContainer } from "./pod.ts";

/** Labels that identify the pod of a container. Their values are ids, names and hex digests. */
export const POD_UID_LABEL = "forage.dev/pod-uid";
export const POD_NAME_LABEL = "forage.dev/pod-name";
export const POD_NAMESPACE_LABEL = "forage.dev/pod-namespace";
export const CONTAINER_LABEL = "forage.dev/container";
export const ATTEMPT_LABEL = "forage.dev/attempt";
export const SPEC_HASH_LABEL = "forage.dev/spec-hash";

export interface ContainerIdentity {
  readonly podUid: string;
  readonly container: string;
  readonly attempt: number;
}

export function containerName(instance: string, of: ContainerIdentity): string {
  return `${instance}-${of.podUid}-${of.container}-${of.attempt}`;
}

/** Returns the uid of a container's pod, or undefined if its labels don't name one. */
export function podUidOf(labels: RuntimeContainer["labels"]): string | undefined {
  return labels[POD_UID_LABEL];
}

/** Parses the labels of a container. A container without these labels belongs to no pod and is removed. */
export function observe(container: RuntimeContainer): ObservedContainer {
  const attempt = Number(container.labels[ATTEMPT_LABEL]);
  return {
    id: container.id,
    container: container.labels[CONTAINER_LABEL] ?? "",
    attempt: Number.isSafeInteger(attempt) && attempt > 0 ? attempt : 1,
    specHash: container.labels[SPEC_HASH_LABEL] ?? "",
    state: container.state,
    ...(container.startedAtMs === undefined ? {} : { startedAtMs: container.startedAtMs }),
    ...(container.finishedAtMs === undefined ? {} : { finishedAtMs: container.finishedAtMs }),
    ...(container.exitCode === undefined ? {} : { exitCode: container.exitCode }),
  };
}
