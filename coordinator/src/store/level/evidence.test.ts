import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type Disk, SYSTEM_DISK } from "./disk.ts";
import { Evidence } from "./evidence.ts";
import { storeFiles } from "./files.ts";

/** A disk without hard links. */
const WITHOUT_LINKS: Disk = {
  ...SYSTEM_DISK,
  link: () => {
    throw Object.assign(new Error("operation not permitted"), { code: "EPERM" });
  },
};

function aStore(t: TestContext, { hasDatabase = true } = {}) {
  const dir = mkdtempSync(join(tmpdir(), "forage-evidence-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const files = storeFiles(dir);
  const recover = (): void => {
    mkdirSync(files.database, { recursive: true });
    rmSync(join(files.database, "000001.log"), { force: true });
    writeFileSync(join(files.database, "000002.log"), "made by the opening");
  };
  if (hasDatabase) {
    mkdirSync(files.database);
    writeFileSync(join(files.database, "000001.log"), "as it was found");
    writeFileSync(files.head, "head");
  }
  return { dir, files, recover, found: () => readdirSync(files.database) };
}

test("restores the original files and removes all others", (t) => {
  const { dir, files, recover, found } = aStore(t);
  const evidence = Evidence.keep(SYSTEM_DISK, files);
  recover();
  evidence.putBack();
  assert.deepEqual(found(), ["000001.log"]);
  assert.equal(readFileSync(join(files.database, "000001.log"), "utf8"), "as it was found");
  assert.deepEqual(readdirSync(dir).sort(), ["HEAD", "db"]);
});

test("an opening of a store in use keeps the evidence of the other opening", (t) => {
  const { files, recover, found } = aStore(t);
  const first = Evidence.keep(SYSTEM_DISK, files);
  const second = Evidence.keep(SYSTEM_DISK, files);
  second.withdraw();
  assert.ok(existsSync(files.evidence));
  recover();
  first.putBack();
  assert.deepEqual(found(), ["000001.log"]);
});

test("an opening of a store in use removes its own evidence", (t) => {
  const { files } = aStore(t);
  Evidence.keep(SYSTEM_DISK, files).withdraw();
  assert.ok(!existsSync(files.evidence));
});

test("doesn't restore a refused database on a file system without hard links", (t) => {
  const { dir, files, recover, found } = aStore(t);
  const evidence = Evidence.keep(WITHOUT_LINKS, files);
  recover();
  evidence.putBack();
  assert.deepEqual(found(), ["000002.log"]);
  assert.deepEqual(readdirSync(dir).sort(), ["HEAD", "db"]);
});

test("removes the database that a refused opening has created", (t) => {
  const { dir, files, recover } = aStore(t, { hasDatabase: false });
  const evidence = Evidence.keep(SYSTEM_DISK, files);
  recover();
  evidence.putBack();
  assert.deepEqual(readdirSync(dir), []);
});

test("ignores evidence after a record was acknowledged", (t) => {
  const { files, recover, found } = aStore(t);
  Evidence.keep(SYSTEM_DISK, files);
  recover();
  writeFileSync(files.head, "newer head");
  Evidence.restore(SYSTEM_DISK, files);
  assert.deepEqual(found(), ["000002.log"]);
  assert.ok(!existsSync(files.evidence));
});
