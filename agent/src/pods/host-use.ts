import type { PodVolumeSpec } from "../volumes/volumes.ts";
import type { Pod } from "./pod.ts";
import { allContainers } from "./pod-containers.ts";
import type { RuntimeObserver } from "./runtime-observer.ts";

/** The resources of this host in use by pods with running containers, according to the runtime and the assignments. */
export interface HostUse {
  /** Uids of pods that have devices and a running container. */
  readonly devices: ReadonlySet<string>;
  readonly volumes: readonly PodVolumeSpec[];
}

export function hostUseOf(pods: readonly Pod[], observer: Pick<RuntimeObserver, "containersOf">): HostUse {
  const running = pods.filter(({ uid }) =>
    observer.containersOf(uid).some(({ state }) => state !== "exited" && state !== "created"),
  );
  const withDevices = running.filter((pod) =>
    allContainers(pod).some(({ extended = {} }) => Object.keys(extended).length > 0),
  );
  return {
    devices: new Set(withDevices.map(({ uid }) => uid)),
    volumes: running.flatMap(({ volumes }) => volumes ?? []),
  };
}
