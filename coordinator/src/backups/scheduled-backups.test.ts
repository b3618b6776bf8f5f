import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { pino } from "pino";
import { until } from "../../test/support/until.ts";
import { type BackupInfo, type DurableStore, openLevelStore, restoreLevelStore } from "../store/index.ts";
import { BackupDirectory, type BackupDirectoryOptions } from "./backup-directory.ts";
import { RETRY_MS, START_DELAY_MS } from "./plan-backups.ts";
import { ScheduledBackups } from "./scheduled-backups.ts";

const HOUR_MS = 3_600_000;

test("writes a restorable backup at each interval, and keeps the newest ones", async (t) => {
  const { store, dir, clock, events, start } = await aStore(t);
  await store.txn([], [{ type: "put", key: "a", value: Buffer.from("1") }]);
  const backups = await start({});
  clock.advance(START_DELAY_MS);
  for (let made = 1; made <= 3; made++) {
    await until(`backup ${made} is made`, () => events.length === made);
    clock.advance(24 * HOUR_MS);
  }
  await until("a further backup is made", () => events.length === 4);
  await backups.close();
  assert.deepEqual(new Set(events), new Set(["backup-made"]));
  const names = readdirSync(dir).sort();
  assert.equal(names.length, 2);
  assert.equal(backups.failures, 0);

  const restored = join(dir, "restored");
  await restoreLevelStore({ dir: restored, file: join(dir, names.at(-1) ?? "") });
  const copy = await openLevelStore({ dir: restored, clock, create: "refuse", ballastBytes: 1024 });
  const { records } = await copy.range("");
  await copy.close();
  assert.deepEqual(
    records.map(({ key, value }) => [key, Buffer.from(value).toString()]),
    [["a", "1"]],
  );
});

test("removes an unreadable new backup, keeps older ones, and retries soon", async (t) => {
  const { dir, clock, events, start, store } = await aStore(t);
  let damage = true;
  const backup = async (file: string): Promise<BackupInfo> => {
    const info = await store.backup(file);
    if (damage) truncateSync(file, 30);
    return info;
  };
  const older = ["store-20290101T000000Z.backup", "store-20290102T000000Z.backup"];
  for (const name of older) writeFileSync(join(dir, name), "");
  const backups = await start({ store: { backup } });
  clock.advance(START_DELAY_MS);
  await until("the backup has failed", () => events.length === 1);
  assert.deepEqual(events, ["backup-failed"]);
  assert.deepEqual(readdirSync(dir).sort(), older);
  assert.equal(backups.failures, 1);
  damage = false;
  clock.advance(RETRY_MS);
  await until("the next backup is made", () => events.length === 2);
  assert.deepEqual(events, ["backup-failed", "backup-made"]);
  assert.equal(readdirSync(dir).includes("store-20290101T000000Z.backup"), false);
});

test("writes no backup to a disk without enough free space", async (t) => {
  const { dir, clock, events, start } = await aStore(t);
  let free = 100 * 1024 * 1024;
  await start({ freeBytes: async () => free });
  clock.advance(START_DELAY_MS);
  await until("the backup has failed", () => events.length === 1);
  assert.deepEqual(readdirSync(dir), []);
  free *= 10;
  clock.advance(RETRY_MS);
  await until("the next backup is made", () => events.length === 2);
  assert.equal(readdirSync(dir).length, 1);
});

test("waits for the rest of the interval after a restart, and removes leftovers of a crash", async (t) => {
  const { dir, clock, events, start } = await aStore(t);
  const first = await start({});
  clock.advance(START_DELAY_MS);
  await until("the first backup is made", () => events.length === 1);
  await first.close();
  const [name = ""] = readdirSync(dir);
  copyFileSync(join(dir, name), join(dir, "store-20291231T000000Z.backup.partial"));
  clock.advance(20 * HOUR_MS);
  assert.equal(events.length, 1);
  await start({});
  assert.equal(clock.pending, 1);
  clock.advance(3 * HOUR_MS);
  assert.equal(clock.pending, 1);
  clock.advance(HOUR_MS);
  await until("the second backup is made", () => events.length === 2);
  assert.equal(readdirSync(dir).length, 2);
  assert.ok(!readdirSync(dir).some((file) => file.endsWith(".partial")));
});

interface Scene {
  readonly store: DurableStore;
  readonly dir: string;
  readonly clock: VirtualClock;
  /** The logged events, in order. */
  readonly events: string[];
  readonly start: (options: Partial<BackupDirectoryOptions>) => Promise<ScheduledBackups>;
}

async function aStore(t: TestContext): Promise<Scene> {
  const root = mkdtempSync(join(tmpdir(), "forage-backups-"));
  const dir = mkdtempSync(join(root, "backups-"));
  const clock = new VirtualClock();
  // The store has a separate clock, because its timers must not count as those of backups.
  const store = await openLevelStore({
    ...{ dir: join(root, "store"), clock: new VirtualClock(), ballastBytes: 1024 },
  });
  const events: string[] = [];
  const log = pino({}, { write: (line: string) => void events.push(JSON.parse(line).event) });
  const open: ScheduledBackups[] = [];
  t.after(async () => {
    for (const backups of open) await backups.close();
    await store.close();
    rmSync(root, { recursive: true });
  });
  const defaults = { store, path: dir, keep: 2, clock };
  return {
    ...{ store, dir, clock, events },
    start: async (options) => {
      const directory = await BackupDirectory.open({ ...defaults, ...options });
      const backups = await ScheduledBackups.start({ directory, intervalMs: 24 * HOUR_MS, clock, log });
      open.push(backups);
      return backups;
    },
  };
}
