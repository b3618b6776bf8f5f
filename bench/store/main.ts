import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock as clock } from "@forage/common/clock";
import { openLevelStore } from "../../coordinator/src/store/index.ts";
import { type EtcdServer, startEtcd } from "../../hack/lib/etcd-server.ts";
import { openInEtcd } from "./open-in-etcd.ts";
import { measureRecords } from "./records.ts";
import { measureSyncFloor, measureWrites, type WriteRate } from "./writes.ts";

const WRITERS = [1, 16, 128, 1024];
const VALUE_BYTES = 1024;
const RECORDS = 100_000;

/** Measures the store on this machine and disk, with both engines: `store [--dir DIR] [--seconds N]`. */
export async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { dir: { type: "string", default: tmpdir() }, seconds: { type: "string", default: "5" } },
  });
  const root = mkdtempSync(join(values.dir, "forage-bench-store-"));
  try {
    await run(root, Number(values.seconds) * 1000);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

async function run(root: string, durationMs: number): Promise<void> {
  const fdatasyncPerSecond = Math.round(measureSyncFloor(root, Math.min(durationMs, 2000), VALUE_BYTES));
  console.log(`append and fdatasync of 1 KiB, one after the other: ${fdatasyncPerSecond}/s\n`);
  console.log("durable writes of 1 KiB, each its own transaction");
  const etcd = await startEtcd({ dataDir: join(root, "etcd") });
  const writes = await measureEngines(root, etcd, durationMs).finally(() => etcd.close());
  const records = await measureRecords(root, RECORDS, VALUE_BYTES);
  console.log(`\n${RECORDS} records of 1 KiB`);
  for (const [name, value] of Object.entries(records)) console.log(`${name.padStart(24)} ${value}`);
  console.log(
    JSON.stringify({ bench: "store", valueBytes: VALUE_BYTES, fdatasyncPerSecond, writes, records }),
  );
}

/** Measures both engines in turn, so other work of the machine affects both equally. */
async function measureEngines(root: string, etcd: EtcdServer, durationMs: number) {
  printRow(["engine", "writers", "writes/s", "p50 ms", "p99 ms", "CPU us/write"]);
  const writes: (WriteRate & { readonly engine: string })[] = [];
  for (const writers of WRITERS) {
    const name = `writes-${writers}`;
    const engines = {
      disk: () => openLevelStore({ dir: join(root, name), clock }),
      etcd: () => openInEtcd(etcd.endpoint, join(root, `${name}-etcd`), `/${name}/`),
    };
    for (const [engine, open] of Object.entries(engines)) {
      const rate = await measureWrites(await open(), writers, durationMs, VALUE_BYTES);
      printRow([engine, writers, rate.perSecond, rate.p50Ms, rate.p99Ms, rate.cpuMicros]);
      writes.push({ engine, ...rate });
    }
  }
  return writes;
}

function printRow(columns: readonly (string | number)[]): void {
  console.log(columns.map((column) => String(column).padStart(14)).join(""));
}
