import { randomBytes } from "node:crypto";
import type { Clock } from "../../clock.ts";
import { type ContainerCgroup, readProcesses } from "../cgroup/container-cgroup.ts";
import { readKernelFile } from "../cgroup/read-kernel-file.ts";

/**
 * The soft limit on file locks of all processes of one exec, which identifies them. Linux has not enforced it since
 * 2.4.25, and each process inherits it. No other property identifies all of them without being visible to the command:
 * nerdctl puts every exec into the container's own cgroup, and processes that daemonize leave their session and parent.
 */
export type ExecMark = bigint;

/** Marks are below the value for "unlimited" and above any limit in practical use. */
const MARK_BITS = 62n;
const LEAST_MARK = 1n << MARK_BITS;

export function newMark(): ExecMark {
  return LEAST_MARK | (randomBytes(8).readBigUInt64BE() >> (64n - MARK_BITS));
}

// Killing nerdctl leaves its command running in the container, and containerd may still be starting it.
const RECHECK_MS = [0, 50, 200, 500, 1_000] as const;

/**
 * Kills all processes with the mark, until none has been found for a while or `ended` reports that no more can start.
 */
export async function killMarked(
  cgroup: ContainerCgroup,
  mark: ExecMark,
  clock: Clock,
  ended: () => boolean,
): Promise<void> {
  for (const delayMs of RECHECK_MS) {
    await new Promise<void>((resolve) => clock.schedule(delayMs, resolve));
    const found = readProcesses(cgroup).filter((pid) => hasMark(pid, mark));
    for (const pid of found) kill(pid);
    if (found.length === 0 && ended()) return;
  }
}

export function hasMark(pid: number, mark: ExecMark): boolean {
  return locksOf(pid) === mark;
}

/** Reports whether a process has the limit of its container's settings. runc sets that limit for every exec, so that no mark is passed on. */
export function hasOwnLimit(pid: number): boolean {
  const locks = locksOf(pid);
  return locks !== undefined && locks < LEAST_MARK;
}

/** Returns the soft limit on file locks. Undefined if the process is gone or its locks are unlimited. */
function locksOf(pid: number): bigint | undefined {
  const [, soft] = /^Max file locks +(\d+) /m.exec(readKernelFile(`/proc/${pid}/limits`) ?? "") ?? [];
  return soft === undefined ? undefined : BigInt(soft);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has already ended.
  }
}
