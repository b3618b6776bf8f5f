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
   * To be called once, before anything else: what known pods had stays theirs, all else is free. `usingPodUids` are the pods with
   * live containers that were started with devices. A missing record of such a pod counts as damaged.
   */
  recover(knownPodUids: ReadonlySet<string>, usingPodUids: ReadonlySet<string>): Promise<void>;
  /**
   * All that a container needs, remembered on disk before it is given; the same again at each start, as far as it is still there.
   * Rejects with a {@link DeviceError}. Call it right before each start.
   */
  take(podUid: string, request: DeviceRequest): Promise<readonly HostDevice[]>;
  /** The pod's containers must be gone. Unknown uids are fine. */
  release(podUid: string): Promise<void>;
  /** Calls when there may be units for those that found too few: some were released, or have come back. One listener. */
  onFreed(listener: () => void): void;
  /** Returns the number of units, and the number of usable ones. */
  amounts(): DeviceAmounts;
  /** Looks now and then what is there, until the signal aborts; `onChange`: the amounts differ. */
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

/** There are not enough units now; the message says whose fault it is. */
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
