import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";

/** The variable that holds the path of the file to which processes of test files append their processor time. */
export const PROCESSOR_TIMES_VARIABLE = "FORAGE_TEST_TIMES";
/** The unit of times in /proc/PID/stat. Linux reports 100 ticks per second on all architectures. */
const TICK_MS = 10;
/** The positions in /proc/PID/stat behind the program's name: own time in user and kernel mode, and that of ended children. */
const TIMES = [11, 12, 13, 14];

/**
 * Appends the path of a test file and the processor time of this process and its ended children to a file. Children of other
 * processes, such as containers, are not included. Does nothing if the file's directory is gone.
 */
export function appendProcessorTime(file: string, path: string): void {
  if (!existsSync(dirname(file))) return;
  const [, fields = ""] = readFileSync("/proc/self/stat", "utf8").split(/\) (?!.*\) )/s);
  const ticks = TIMES.reduce((sum, at) => sum + Number(fields.split(" ")[at]), 0);
  appendFileSync(file, `${JSON.stringify([path, ticks * TICK_MS])}\n`);
}

/** Returns the processor time of each test file in milliseconds, by its path. Empty if no process has appended one. */
export function readProcessorTimes(file: string): ReadonlyMap<string, number> {
  const times = new Map<string, number>();
  if (!existsSync(file)) return times;
  for (const line of readFileSync(file, "utf8").split("\n").filter(Boolean)) {
    const [path, ms] = JSON.parse(line) as [string, number];
    times.set(path, (times.get(path) ?? 0) + ms);
  }
  return times;
}
