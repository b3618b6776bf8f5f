import type { Clock } from "../clock.ts";
import type { HostDevice } from "../runtime/runtime.ts";

/** One unit of a resource, which satisfies a request of 1. */
export interface DeviceUnit {
  /** Unique among the units of its resource, and constant as long as the unit's description is. */
  readonly id: string;
  readonly devices: readonly HostDevice[];
}

/** Units by resource name, such as `example.com/gpu`. */
export type DevicePool = Readonly<Record<string, readonly DeviceUnit[]>>;

/**
 * Assigns the host's devices to containers, each unit to one pod at a time. `HostDevices` is the implementation, and
 * `noDevices` that of a host without devices.
 */
export interface PodDevices {
  /**
   * Must be called once, before any other method. Known pods keep their devices; all other devices become free. `usingPodUids`
   * are the pods with live containers that were started with devices. A missing record of such a pod counts as damaged.
   */
  recover(knownPodUids: ReadonlySet<string>, usingPodUids: ReadonlySet<string>): Promise<void>;
  /**
   * Allocates all devices that a container needs and records them on disk before it returns them. A later start gets
   * the same devices, as far as they still exist. Rejects with a {@link DeviceError}. Call it right before each start.
   */
  allocate(podUid: string, request: DeviceRequest): Promise<readonly HostDevice[]>;
  /** Releases the pod's devices. Its containers must be gone. Accepts unknown uids. */
  release(podUid: string): Promise<void>;
  /**
   * Calls the listener when devices were released or have reappeared, so that rejected requests may succeed. Supports
   * one listener.
   */
  onFreed(listener: () => void): void;
  /** Returns the total number of units and the number of usable ones. */
  amounts(): DeviceAmounts;
  /** Checks the devices at intervals until the signal aborts. Calls `onChange` when the amounts differ. */
  watch(clock: Clock, signal: AbortSignal, onChange: () => void): Promise<void>;
}

export interface DeviceRequest {
  readonly container: string;
  /** Whether it is an init container. Init containers end before others begin, so their units can be reused. */
  readonly init: boolean;
  /** The number of units of each resource; see `PodContainer.extended`. */
  readonly desired: Readonly<Record<string, number>>;
}

export interface DeviceAmounts {
  readonly capacity: Readonly<Record<string, number>>;
  readonly allocatable: Readonly<Record<string, number>>;
}

/** Thrown if there are too few units at present. The message gives the cause. */
export class DeviceError extends Error {
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.name = "DeviceError";
  }
}

/** The devices of a host whose agent declares none. */
export const noDevices: PodDevices = {
  recover: async () => undefined,
  allocate: async (_, { desired }) => {
    const [name] = Object.keys(desired);
    if (name !== undefined) throw new DeviceError(`this host has no ${name}: see devices of its agent`);
    return [];
  },
  release: async () => undefined,
  onFreed: () => undefined,
  amounts: () => ({ capacity: {}, allocatable: {} }),
  watch: async () => undefined,
};
