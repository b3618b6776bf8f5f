import { readFileSync } from "node:fs";

/** A process that cannot be mistaken for a later one with the same id. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since the boot. */
  readonly startTicks: number;
  readonly bootId: string;
}

/** Reads what the kernel reports about processes; a test brings its own. */
export interface Processes {
  /** Changes with every boot of the host. */
  bootId(): string;
  /** Undefined if there is no such process. */
  identify(pid: number): ProcessIdentity | undefined;
}

/** `bootIdFile` is `/proc/sys/kernel/random/boot_id` except in tests. It is read once: no process outlives a boot. */
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

// The second field, the program's name in brackets, may itself hold spaces and brackets; the state comes right behind it.
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
