import assert from "node:assert/strict";
import {
  chownSync,
  existsSync,
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { maintenanceTask, runMaintenance } from "./maintenance.ts";
import { openLevelStore } from "./store/index.ts";
import { systemClock } from "./time/clock.ts";

const OWNER_ID = 54_321;
const at = (dataDir: string) => ({ dataDir, store: {} });
const withoutRoot = process.getuid?.() === 0 ? false : "only root gives files away";

test("leaves a store that the service's user can open after a restore, verification and backup by root", {
  skip: withoutRoot,
}, async (t) => {
  const dir = scratch(t);
  const from = join(dir, "first");
  const backup = join(dir, "backup");
  mkdirSync(from);
  const store = await openLevelStore({ dir: join(from, "store"), clock: systemClock, create: "allow" });
  await store.close();
  await runMaintenance({ name: "backup", file: backup }, at(from), systemClock);
  assert.equal(lstatSync(join(from, "store")).uid, 0, "root's own directory stays root's");

  const dataDir = join(dir, "second");
  mkdirSync(dataDir);
  chownSync(dataDir, OWNER_ID, OWNER_ID);
  await runMaintenance({ name: "restore", file: backup }, at(dataDir), systemClock);
  await runMaintenance({ name: "verify" }, at(dataDir), systemClock);
  const paths = [join(dataDir, "store"), ...globSync(`${dataDir}/store/**/*`)];
  assert.ok(paths.length > 3);
  for (const path of paths) {
    const { uid, gid } = lstatSync(path);
    assert.deepEqual([uid, gid], [OWNER_ID, OWNER_ID], path);
  }
});

test("changes the owner of a link in the store, and not of its target", {
  skip: withoutRoot,
}, async (t) => {
  const dataDir = scratch(t);
  const other = scratch(t);
  mkdirSync(join(dataDir, "store"));
  symlinkSync(other, join(dataDir, "store", "link"));
  chownSync(dataDir, OWNER_ID, OWNER_ID);
  await assert.rejects(runMaintenance({ name: "verify" }, at(dataDir), systemClock));
  assert.equal(lstatSync(join(dataDir, "store", "link")).uid, OWNER_ID);
  assert.equal(lstatSync(other).uid, 0);
  assert.ok(existsSync(other));
});

test("refuses unknown tasks", () => {
  const none = { epoch: undefined, newStore: false, replace: false, yes: false, unit: undefined };
  assert.equal(maintenanceTask([], none), undefined);
  assert.throws(() => maintenanceTask(["backup"], none), /backup needs exactly one file/);
  assert.throws(() => maintenanceTask(["verify", "x"], none), /verify accepts no file/);
  assert.throws(
    () => maintenanceTask(["verify"], { ...none, replace: true }),
    /--replace is only for restore/,
  );
  assert.throws(
    () => maintenanceTask(["restore", "f"], { ...none, yes: true }),
    /are only for restore --replace/,
  );
  assert.throws(() => maintenanceTask(["nonsense"], none), /there is no task "nonsense"/);
});

function scratch(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "forage-maintenance-"));
  t.after(() => rmSync(dir, { recursive: true }));
  return dir;
}
