/** A process that containerd started for one container of one namespace. */
export interface Shim {
  readonly pid: number;
  /** The start time in clock ticks after boot. It distinguishes the process from a later one with the same pid. */
  readonly startTicks: string;
  readonly containerId: string;
  readonly children: readonly ShimChild[];
}

export interface ShimChild {
  readonly pid: number;
  readonly startTicks: string;
  /**
   * Whether the shim's only child is `runc init` of a container that was created but never started, so no program of
   * the container runs.
   */
  readonly unstarted: boolean;
}

/** The monotonic time at which each unused shim was first seen, by `shimKey`. */
export type UnusedSince = ReadonlyMap<string, number>;

export interface ShimSweepPlan {
  readonly end: readonly Shim[];
  readonly unusedSince: UnusedSince;
}

/**
 * The time for which a shim must be unused before it is ended. A shim exits by itself within a second after its
 * container was removed; a call to containerd in progress takes at most a minute.
 */
export const UNUSED_SHIM_MS = 90_000;

/**
 * Selects the shims to end. A shim is unused if containerd has no container with its id and no program runs below it.
 * `containerIds` holds all containers of the namespace, listed after the shims were read, because containerd records a
 * container before it starts the shim.
 */
export function planShimSweep(
  shims: readonly Shim[],
  containerIds: ReadonlySet<string>,
  before: UnusedSince,
  nowMs: number,
): ShimSweepPlan {
  const unusedSince = new Map<string, number>();
  const end: Shim[] = [];
  for (const shim of shims) {
    if (containerIds.has(shim.containerId) || shim.children.some(({ unstarted }) => !unstarted)) continue;
    const key = shimKey(shim);
    const sinceMs = before.get(key) ?? nowMs;
    unusedSince.set(key, sinceMs);
    if (nowMs - sinceMs >= UNUSED_SHIM_MS) end.push(shim);
  }
  return { end, unusedSince };
}

/**
 * Reports whether a process is `runc init`. `program` is the target of its `/proc/PID/exe`. runc runs a copy of itself:
 * either a file in memory, or its own file through a mount that it has already detached, whose path reads "/". A
 * program of a container has a path of its own.
 */
export function isRuncInit(program: string, argv: readonly string[]): boolean {
  return (
    /^\/$|^\/memfd:runc|\/runc( \(deleted\))?$/.test(program) && argv[0] === "runc" && argv[1] === "init"
  );
}

function shimKey({ pid, startTicks }: Shim): string {
  return `${pid}/${startTicks}`;
}
