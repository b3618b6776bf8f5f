import { readFileSync } from "node:fs";

/** Identifies a process even if a later process gets the same id. */
export interface ProcessIdentity {
  readonly pid: number;
  /** The start time in clock ticks since boot. */
  readonly startTicks: number;
  readonly bootId: string;
}

/** Reads the kernel's information about processes. Tests have their own implementation. */
export interface Processes {
  /** Returns an id that changes with every boot of the host. */
  bootId(): string;
  /** Returns undefined if there is no such process. */
  identify(pid: number): ProcessIdentity | undefined;
}

/**
 * Reads processes from /proc. `bootIdFile` is `/proc/sys/kernel/random/boot_id` except in tests. It is read once,
 * because no process outlives a boot.
 */
export function hostProcesses(bootIdFile: string): Processes {
  const bootId = readFileSync(bootIdFile, "utf8").trim();
  return {
    bootId: () => bootId,
    identify: (pid) => {
      const startTicks = readStartTicks(pid);
      return startTicks === undefined ? undefined : { pid, startTicks, bootId };
    },
  };
}

/** Reports whether the process still runs. */
export function isAlive(processes: Processes, { pid, startTicks, bootId }: ProcessIdentity): boolean {
  const now = processes.identify(pid);
  return now !== undefined && now.startTicks === startTicks && now.bootId === bootId;
}

// The second field, the program's name in brackets, may itself contain spaces and brackets. The state follows it.
function readStartTicks(pid: number): number | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const [state] = fields;
    const startTicks = Number(fields[19]);
    return state === "Z" || state === "X" || !Number.isFinite(startTicks) ? undefined : startTicks;
  } catch {
    return undefined;
  }
}
