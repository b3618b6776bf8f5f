import { execFile } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { systemClock as clock } from "@forage/common/clock";
import { type LevelStore, openLevelStore } from "../../coordinator/src/store/index.ts";
import type { OpenCost } from "./open-probe.ts";

const PROBE = join(import.meta.dirname, "open-probe.ts");

/** Returns a key in the form of a fleet's keys: a kind, a namespace, a name. */
export function keyOf(i: number): string {
  return `pods/namespace-${i % 50}/workload-${String(i).padStart(7, "0")}`;
}

export type RecordFigures = OpenCost & {
  readonly diskBytesPerRecord: number;
  readonly loadMs: number;
  readonly getsPerSecond: number;
  readonly rangesOf100PerSecond: number;
  readonly backupMs: number;
  readonly verifyMs: number;
};

/** Measures the cost of keeping and opening `count` records. */
export async function measureRecords(
  root: string,
  count: number,
  valueBytes: number,
): Promise<RecordFigures> {
  const dir = join(root, "records");
  const store = await openLevelStore({ dir, clock });
  const loadMs = await timed(() => load(store, count, valueBytes));
  await store.compact(store.revision);
  const getsPerSecond = await rate(20_000, (i) => store.get(keyOf((i * 7919) % count)));
  const rangesOf100PerSecond = await rate(2000, (i) => store.range("pods/", { limit: 100, after: keyOf(i) }));
  const backupMs = await timed(() => store.backup(join(root, "backup")));
  const verifyMs = await timed(() => store.verify());
  await store.close();
  const sizes = readdirSync(join(dir, "db")).map((name) => statSync(join(dir, "db", name)).size);
  const diskBytesPerRecord = Math.round(sizes.reduce((sum, size) => sum + size, 0) / count);
  // Opening runs in a separate process, so the memory that loading needed is not counted.
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", PROBE, dir]);
  const cost = JSON.parse(stdout) as OpenCost;
  return { ...cost, diskBytesPerRecord, loadMs, getsPerSecond, rangesOf100PerSecond, backupMs, verifyMs };
}

async function load(store: LevelStore, count: number, valueBytes: number): Promise<void> {
  const value = Buffer.alloc(valueBytes, "x");
  const opsMax = 100;
  for (let i = 0; i < count; i += opsMax * 20) {
    const txns = Array.from({ length: 20 }, (_, part) =>
      Array.from(
        { length: opsMax },
        (_, j) => ({ type: "put", key: keyOf(i + part * opsMax + j), value }) as const,
      ),
    );
    await Promise.all(txns.map((ops) => store.txn([], ops)));
  }
}

async function timed(run: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await run();
  return Math.round(performance.now() - startMs);
}

async function rate(count: number, run: (i: number) => Promise<unknown>): Promise<number> {
  const elapsedMs = await timed(async () => {
    for (let i = 0; i < count; i++) await run(i);
  });
  return Math.round((count * 1000) / elapsedMs);
}
