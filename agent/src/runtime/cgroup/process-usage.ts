import type { ProcessUsage } from "../runtime.ts";
import { readKernelFile } from "./read-kernel-file.ts";

// Each process costs two file reads. Further processes count only in the container's sum.
const PROCESSES_MAX = 128;
/** Nanoseconds in a clock tick: Linux counts processor time in hundredths of a second. */
const TICK_NANOS = 1e7;
const KIB = 1024;
const RSS_LINE = /^VmRSS:\s+(\d+) kB$/m;
const SWAP_LINE = /^VmSwap:\s+(\d+) kB$/m;

/** Returns the usage of each process, at most of the first 128. Leaves out processes that end during the call. */
export function readProcessUsage(pids: readonly number[], procDir: string): readonly ProcessUsage[] {
  return pids
    .slice(0, PROCESSES_MAX)
    .map((pid) => readProcess(procDir, pid))
    .filter((it) => it !== undefined);
}

function readProcess(procDir: string, pid: number): ProcessUsage | undefined {
  const stat = readKernelFile(`${procDir}/${pid}/stat`);
  const status = readKernelFile(`${procDir}/${pid}/status`);
  if (stat === undefined || status === undefined) return undefined;
  // The second field is the program's name in brackets, which may itself contain spaces and brackets.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [userTicks = 0, systemTicks = 0, startTicks = 0] = [11, 12, 19].map((at) => Number(fields[at]));
  return {
    pid,
    startTicks,
    userNanos: userTicks * TICK_NANOS,
    systemNanos: systemTicks * TICK_NANOS,
    rssBytes: kibibytes(status, RSS_LINE),
    swapBytes: kibibytes(status, SWAP_LINE),
  };
}

/**
 * Returns the value of a line in KiB. Returns 0 without such a line, as for a process that has ended and was not waited
 * for.
 */
function kibibytes(status: string, line: RegExp): number {
  return Number(line.exec(status)?.[1] ?? 0) * KIB;
}
