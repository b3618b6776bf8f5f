import assert from "node:assert/strict";
import { test } from "node:test";
import { backupName, backupsAmong, leftovers, surplusBackups, untilNextBackup } from "./plan-backups.ts";

const NOW_MS = Date.UTC(2030, 4, 6, 7, 8, 9, 123);
const HOUR_MS = 3_600_000;

test("names a backup by its time in seconds, and ignores other files", () => {
  const name = backupName("scheduled", NOW_MS);
  assert.equal(name, "store-20300506T070809Z.backup");
  const others = ["store.backup", `${name}.partial`, "before-upgrade.backup"];
  assert.deepEqual(backupsAmong([...others, name]), [{ name, series: "scheduled", madeMs: NOW_MS - 123 }]);
  assert.deepEqual(leftovers([...others, name, "mine.partial"]), [`${name}.partial`]);
});

test("names an on-demand backup by its time in milliseconds", () => {
  const name = backupName("on-demand", NOW_MS);
  assert.equal(name, "demand-20300506T070809123Z.backup");
  assert.deepEqual(backupsAmong([name, `../${name}`]), [{ name, series: "on-demand", madeMs: NOW_MS }]);
  assert.deepEqual(leftovers([`${name}.partial`]), [`${name}.partial`]);
});

test("does not remove scheduled backups because of on-demand ones", () => {
  const scheduled = backupName("scheduled", NOW_MS);
  const demanded = [1, 2].map((hours) => backupName("on-demand", NOW_MS + hours * HOUR_MS));
  assert.deepEqual(
    surplusBackups(backupsAmong([scheduled, ...demanded]), 1).map(({ name }) => name),
    demanded.slice(0, 1),
  );
});

test("returns the oldest backups beyond the number to keep as surplus", () => {
  const names = [2, 0, 1].map((hours) => backupName("scheduled", NOW_MS + hours * HOUR_MS));
  const backups = backupsAmong(names);
  assert.deepEqual(
    surplusBackups(backups, 1).map(({ name }) => name),
    [backupName("scheduled", NOW_MS), backupName("scheduled", NOW_MS + HOUR_MS)],
  );
  assert.deepEqual(surplusBackups(backups, 3), []);
});

test("schedules the next backup an interval after the newest one, even if that is from the future", () => {
  const due = (lastMs: number | undefined) =>
    untilNextBackup({ nowMs: NOW_MS, lastMs, intervalMs: 24 * HOUR_MS });
  assert.equal(due(undefined), 0);
  assert.equal(due(NOW_MS - HOUR_MS), 23 * HOUR_MS);
  assert.equal(due(NOW_MS - 48 * HOUR_MS), 0);
  assert.equal(due(NOW_MS + 48 * HOUR_MS), 24 * HOUR_MS);
});
