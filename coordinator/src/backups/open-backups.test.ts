import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { pino } from "pino";
import { until } from "../../test/support/until.ts";
import { openLevelStore } from "../store/index.ts";
import { openBackups } from "./open-backups.ts";
import { START_DELAY_MS } from "./plan-backups.ts";

const HOUR_MS = 3_600_000;

test("writes backups below the data directory at the configured interval", async (t) => {
  const { clock, open } = await aStore(t);
  const { stats, directory, close } = await open({ enabled: true, intervalHours: 6, keep: 2 });
  assert.deepEqual(stats(), { lastMs: undefined, failures: 0 });
  clock.advance(START_DELAY_MS);
  await until("the first backup is made", () => stats().lastMs !== undefined);
  const { lastMs = 0 } = stats();
  await directory.idle();
  clock.advance(6 * HOUR_MS - 1);
  await directory.idle();
  assert.equal(stats().lastMs, lastMs);
  clock.advance(1);
  await until("the second backup is made", () => stats().lastMs !== lastMs);
  await close();
  assert.equal((await directory.list()).length, 2);
});

test("makes no backups by itself if they are disabled", async (t) => {
  const { clock, open } = await aStore(t);
  const { stats, directory, close } = await open({ enabled: false, intervalHours: 6, keep: 2 });
  clock.advance(24 * HOUR_MS);
  await directory.idle();
  assert.deepEqual(stats(), { lastMs: undefined, failures: 0 });
  await close();
});

async function aStore(t: TestContext) {
  const dataDir = mkdtempSync(join(tmpdir(), "forage-open-backups-"));
  const clock = new VirtualClock();
  const storeOptions = { dir: join(dataDir, "store"), clock: new VirtualClock(), ballastBytes: 1024 };
  const store = await openLevelStore(storeOptions);
  t.after(async () => {
    await store.close();
    rmSync(dataDir, { recursive: true });
  });
  const log = pino({ level: "silent" });
  const open = (backups: Parameters<typeof openBackups>[0]["backups"]) =>
    openBackups({ backups, dataDir }, { store, clock, log });
  return { clock, open };
}
