import { readFile } from "node:fs/promises";
import { cpus } from "node:os";
import type { Clock } from "../clock.ts";

/** Returns the busy time of all processors since boot, in milliseconds. */
export type ReadBusyMs = () => number;

export interface HostUsage {
  /** The mean since the previous call; 0 at the first call. */
  readonly cpuMilli: number;
  /** The memory that can't be reclaimed without swapping. */
  readonly memoryBytes: number;
}

/**
 * Measures the usage of the whole host, including pods. Each call reads one or two small files, and nothing runs in
 * between.
 */
export class UsageMeter {
  readonly #clock: Clock;
  readonly #procDir: string;
  readonly #readBusyMs: ReadBusyMs;
  #last: { readonly atMs: number; readonly busyMs: number } | undefined;

  constructor(parts: { clock: Clock; procDir: string; readBusyMs: ReadBusyMs }) {
    this.#clock = parts.clock;
    this.#procDir = parts.procDir;
    this.#readBusyMs = parts.readBusyMs;
  }

  async read(): Promise<HostUsage> {
    const now = { atMs: this.#clock.monotonicMs(), busyMs: this.#readBusyMs() };
    const last = this.#last ?? now;
    this.#last = now;
    const elapsedMs = now.atMs - last.atMs;
    const cpuMilli =
      elapsedMs <= 0 ? 0 : Math.max(0, Math.round(((now.busyMs - last.busyMs) / elapsedMs) * 1_000));
    return { cpuMilli, memoryBytes: usedMemory(await readFile(`${this.#procDir}/meminfo`, "utf8")) };
  }
}

export const readBusyMs: ReadBusyMs = () =>
  cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);

/** Computes the memory in use from the text of /proc/meminfo. */
export function usedMemory(meminfo: string): number {
  const kibibytes = (key: string) =>
    Number(new RegExp(`^${key}:\\s+(\\d+) kB$`, "m").exec(meminfo)?.[1] ?? 0);
  return Math.max(0, kibibytes("MemTotal") - kibibytes("MemAvailable")) * 1_024;
}
