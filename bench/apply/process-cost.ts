import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

/** The clock ticks per second of /proc/PID/stat, a constant on Linux. */
const TICKS_PER_SECOND = 100;

/** Returns the resident memory in MB (10^6 bytes). */
export function residentMb(pid: number): number {
  const kib = Number(
    /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? Number.NaN,
  );
  return (kib * 1024) / 1e6;
}

/** Returns the resident memory without mapped files, such as LevelDB's tables, in MB (10^6 bytes). */
export function anonymousMb(pid: number): number {
  const kib = /^RssAnon:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return (Number(kib ?? Number.NaN) * 1024) / 1e6;
}

/** Returns the peak of resident memory since `resetPeak`, in MB (10^6 bytes). */
export function peakMb(pid: number): number {
  const kib = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return (Number(kib ?? Number.NaN) * 1024) / 1e6;
}

export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}

/** Returns the user and system time so far, in seconds. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Returns the percentage of a core that the idle process uses during `seconds`. */
export async function idlePercent(pid: number, seconds: number): Promise<number> {
  const before = cpuSeconds(pid);
  await delay(seconds * 1000);
  return ((cpuSeconds(pid) - before) / seconds) * 100;
}
