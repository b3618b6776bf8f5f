/** The measured resources of a host. */
export interface HostResources {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
  /** The size of the file system with the containers and their logs. */
  readonly diskBytes: number;
}

/** The resources that pods don't get, for the system, containerd and the agent. */
export interface Reserve {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

/** Quantities by Kubernetes' resource names. */
export type Quantities = Readonly<Record<"cpu" | "memory" | "ephemeral-storage" | "pods", string>>;

const MEBIBYTE = 2 ** 20;
const GIBIBYTE = 2 ** 30;
const RESERVED_CPU_MILLI = 100;
/**
 * The bounds are the use of a bare Debian with containerd, and an amount of page cache that is useful on a large host.
 */
const RESERVED_SHARE = 0.05;
const RESERVED_MEMORY_BYTES = { least: 256 * MEBIBYTE, most: 4 * GIBIBYTE };
const RESERVED_DISK_BYTES = { least: GIBIBYTE, most: 20 * GIBIBYTE };

export function defaultReserve(host: HostResources): Reserve {
  return {
    cpuMilli: RESERVED_CPU_MILLI,
    memoryBytes: within(host.memoryBytes * RESERVED_SHARE, RESERVED_MEMORY_BYTES),
    diskBytes: within(host.diskBytes * RESERVED_SHARE, RESERVED_DISK_BYTES),
  };
}

export function nodeResources(
  host: HostResources,
  reserve: Reserve,
  maxPods: number,
): { readonly capacity: Quantities; readonly allocatable: Quantities } {
  const left: HostResources = {
    cpuMilli: Math.max(0, host.cpuMilli - reserve.cpuMilli),
    memoryBytes: Math.max(0, host.memoryBytes - reserve.memoryBytes),
    diskBytes: Math.max(0, host.diskBytes - reserve.diskBytes),
  };
  return { capacity: toQuantities(host, maxPods), allocatable: toQuantities(left, maxPods) };
}

function toQuantities({ cpuMilli, memoryBytes, diskBytes }: HostResources, maxPods: number): Quantities {
  return {
    cpu: cpuMilli % 1_000 === 0 ? String(cpuMilli / 1_000) : `${cpuMilli}m`,
    memory: toKibibytes(memoryBytes),
    "ephemeral-storage": toKibibytes(diskBytes),
    pods: String(maxPods),
  };
}

// Rounded down, so that no more is promised than exists.
function toKibibytes(bytes: number): string {
  return `${Math.floor(bytes / 1_024)}Ki`;
}

function within(value: number, { least, most }: { least: number; most: number }): number {
  return Math.min(Math.max(value, least), most);
}
