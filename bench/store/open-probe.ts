/** Opens the store in a directory and prints the cost as JSON. Run with --expose-gc. */
import { readFileSync } from "node:fs";
import { systemClock as clock } from "@forage/common/clock";
import { openLevelStore } from "../../coordinator/src/store/index.ts";

export interface OpenCost {
  readonly openMs: number;
  readonly openCpuMs: number;
  /** The live bytes per record after opening: objects and buffers, including the value. */
  readonly liveBytesPerRecord: number;
  /**
   * The process's resident memory per record just after opening. The garbage is collected, but not all of its memory is
   * returned to the system.
   */
  readonly residentBytesPerRecord: number;
}

const [dir] = process.argv.slice(2);
if (dir !== undefined) console.log(JSON.stringify(await measureOpen(dir)));

async function measureOpen(from: string): Promise<OpenCost> {
  const before = memory();
  const cpu = process.cpuUsage();
  const startMs = performance.now();
  const store = await openLevelStore({ dir: from, clock });
  const openMs = performance.now() - startMs;
  const used = process.cpuUsage(cpu);
  const after = memory();
  const count = (await store.range("")).records.length;
  await store.close();
  return {
    openMs: Math.round(openMs),
    openCpuMs: Math.round((used.user + used.system) / 1000),
    liveBytesPerRecord: Math.round((after.liveBytes - before.liveBytes) / count),
    residentBytesPerRecord: Math.round((after.residentBytes - before.residentBytes) / count),
  };
}

/**
 * Measures memory without LevelDB's mapped files, which belong to the page cache and are released when memory is
 * needed.
 */
function memory(): { readonly liveBytes: number; readonly residentBytes: number } {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  const anonymousKib = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  return { liveBytes: heapUsed + external, residentBytes: Number(anonymousKib) * 1024 };
}
