import type { LimitedRoot } from "../runtime/root-disk-watch.ts";
import type { ObservedContainer, Pod } from "./pod.ts";
import { allContainers } from "./pod-containers.ts";

/** Returns the running containers of a pod whose writable layer has a size limit. */
export function limitedRootsOf(pod: Pod, containers: readonly ObservedContainer[]): readonly LimitedRoot[] {
  return allContainers(pod).flatMap(({ name, rootLimitBytes }) => {
    const running = containers.find((it) => it.container === name && it.state === "running");
    if (rootLimitBytes === undefined || running === undefined) return [];
    return [{ podUid: pod.uid, container: name, containerId: running.id, limitBytes: rootLimitBytes }];
  });
}
