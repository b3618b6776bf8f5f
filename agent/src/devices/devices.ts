import type { Clock } from "../clock.ts";
import type { HostDevice } from "../runtime/runtime.ts";

/** One unit of a resource: what a container gets for a count of 1. */
export interface DeviceUnit {
  /** Unique among the units of its resource, and the same as long as it is described the same. */
  readonly id: string;
  readonly devices: readonly HostDevice[];
}

/** Units by resource name, such as `example.com/gpu`. */
export type DevicePool = Readonly<Record<string, readonly DeviceUnit[]>>;

/**
 * Devices that the host lends to containers, each unit to one pod at a time. Real one: `HostDevices`; for a host with none `noDevices`.
 */
export interface PodDevices {
  /**
   * Must be called once, before any other method. Known pods keep their devices; all other devices become free. `usingPodUids`
   * are the pods with live containers that were started with devices. A missing record of such a pod counts as damaged.
   */
  recover(knownPodUids: ReadonlySet<string>, usingPodUids: ReadonlySet<string>): Promise<void>;
  /**
   * Allocates all devices that a container needs and records them on disk before it returns them. A later start gets the same
   * devices, as far as they still exist. Rejects with a {@link DeviceError}. Call it right before each start.
   */
  take(podUid: string, request: DeviceRequest): Promise<readonly HostDevice[]>;
  /** The pod's containers must be gone. Unknown uids are fine. */
  release(podUid: string): Promise<void>;
  /** Calls when there may be units for those that found too few: some were released, or have come back. One listener. */
  onFreed(listener: () => void): void;
  /** Returns the number of units, and the number of usable ones. */
  amounts(): DeviceAmounts;
  /** Checks the devices at intervals until the signal aborts. Calls `onChange` when the amounts differ. */
  watch(clock: Clock, signal: AbortSignal, onChange: () => void): Promise<void>;
}

export interface DeviceRequest {
  readonly container: string;
  /** Init containers are over before others begin, so these may have the same units. */
  readonly init: boolean;
  /** The number of units of each resource; see `PodContainer.extended`. */
  readonly wanted: Readonly<Record<string, number>>;
}

export interface DeviceAmounts {
  readonly capacity: Readonly<Record<string, number>>;
  readonly allocatable: Readonly<Record<string, number>>;
}

/** Thrown when there are not enough units at present. The message names the cause. */
export class DeviceError extends Error {
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.name = "DeviceError";
  }
}

/** The devices of a host whose agent declares none. */
export const noDevices: PodDevices = {
  recover: async () => undefined,
  take: async (_, { wanted }) => {
    const [name] = Object.keys(wanted);
    if (name !== undefined) throw new DeviceError(`this host has no ${name}: see devices of its agent`);
    return [];
  },
  release: async () => undefined,
  onFreed: () => undefined,
  amounts: () => ({ capacity: {}, allocatable: {} }),
  watch: async () => undefined,
};
