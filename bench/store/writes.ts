import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Store } from "../../coordinator/src/store/index.ts";

/**
 * The number of keys that each writer overwrites in turn. The store stays small, and its history is compacted all the
 * time.
 */
const KEYS_PER_WRITER = 100;

export interface WriteRate {
  readonly writers: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The CPU time of the whole process, with LevelDB's threads, but without etcd's process. */
  readonly cpuMicros: number;
}

/** Measures how many writes per second the disk allows one writer. */
export function measureSyncFloor(root: string, durationMs: number, valueBytes: number): number {
  const fd = openSync(join(root, "floor"), "a");
  const block = Buffer.alloc(valueBytes, "x");
  const startMs = performance.now();
  let count = 0;
  while (performance.now() - startMs < durationMs) {
    writeSync(fd, block);
    fdatasyncSync(fd);
    count++;
  }
  closeSync(fd);
  return (count * 1000) / (performance.now() - startMs);
}

/** Runs writers that each put a key, wait until it is durable, and continue with the next. Closes the store. */
export async function measureWrites(
  store: Store,
  writers: number,
  durationMs: number,
  valueBytes: number,
): Promise<WriteRate> {
  const value = Buffer.alloc(valueBytes, "x");
  const latencies: number[] = [];
  const cpu = process.cpuUsage();
  const startMs = performance.now();
  const write = async (writer: number): Promise<void> => {
    for (let i = 0; performance.now() - startMs < durationMs; i++) {
      const beganMs = performance.now();
      await store.txn([], [{ type: "put", key: `w/${writer}/${i % KEYS_PER_WRITER}`, value }]);
      latencies.push(performance.now() - beganMs);
    }
  };
  await Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)));
  const elapsedMs = performance.now() - startMs;
  const used = process.cpuUsage(cpu);
  await store.close();
  latencies.sort((a, b) => a - b);
  return {
    writers,
    perSecond: Math.round((latencies.length * 1000) / elapsedMs),
    p50Ms: round(latencies[Math.floor(latencies.length * 0.5)] ?? 0),
    p99Ms: round(latencies[Math.floor(latencies.length * 0.99)] ?? 0),
    cpuMicros: Math.round((used.user + used.system) / latencies.length),
  };
}

function round(ms: number): number {
  return Math.round(ms * 100) / 100;
}
