import type { PodVolumeSpec } from "../volumes/volumes.ts";
import type { Pod } from "./pod.ts";
import { allContainers } from "./pod-containers.ts";
import type { RuntimeObserver } from "./runtime-observer.ts";

/** The devices and volumes of pods with running containers, taken from the runtime and the assignments. */
export interface HostUse {
  /** Uids of the pods with such a container and devices. */
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
