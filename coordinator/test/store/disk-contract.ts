import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type Disk, emptyDirectory, removeTree, writeWhole } from "../../src/store/level/disk.ts";

/** Declares the tests of the port through which the store changes its directory. */
export function testDisk(name: string, open: () => Disk): void {
  const check = (what: string, run: (disk: Disk, dir: string) => void | Promise<void>) =>
    test(`${name}: ${what}`, async (t) => {
      const dir = mkdtempSync(join(tmpdir(), "forage-disk-"));
      t.after(() => rmSync(dir, { recursive: true }));
      await run(open(), dir);
    });
  directories(check);
  files(check);

  check("a database keeps what was written after it was closed and repaired", async (disk, dir) => {
    const path = join(dir, "db");
    const first = await disk.openDatabase(path);
    await first.put("a", Buffer.from("1"));
    await first.batch().put("b", Buffer.from("2")).del("a").write({ sync: true });
    await first.close();
    await disk.repairDatabase(path);
    const second = await disk.openDatabase(path);
    assert.deepEqual(await second.keys().all(), ["b"]);
    assert.deepEqual(Buffer.from((await second.get("b")) ?? []), Buffer.from("2"));
    await second.close();
  });

  check("a directory has one lock, which can be taken again after it was released", async (disk, dir) => {
    const lock = await disk.lock(dir);
    assert.ok(lock !== undefined);
    assert.equal(await disk.lock(dir), undefined);
    await lock.release();
    const next = await disk.lock(dir);
    assert.ok(next !== undefined);
    await next.release();
  });
}

type Check = (what: string, run: (disk: Disk, dir: string) => void | Promise<void>) => void;

function directories(check: Check): void {
  check("makes a directory with its parents, and again without harm", (disk, dir) => {
    const path = join(dir, "a", "b");
    disk.makeDirectory(path);
    disk.makeDirectory(path);
    disk.syncDirectory(path);
    assert.deepEqual(readdirSync(dir), ["a"]);
  });

  check("removes only empty directories", (disk, dir) => {
    const path = join(dir, "a");
    disk.makeDirectory(join(path, "b"));
    writeFileSync(join(path, "b", "file"), "");
    assert.throws(() => disk.removeDirectory(path), { code: "ENOTEMPTY" });
    emptyDirectory(disk, path);
    assert.deepEqual(readdirSync(path), []);
    removeTree(disk, path);
    assert.ok(!existsSync(path));
    assert.throws(() => disk.removeDirectory(path), { code: "ENOENT" });
  });
}

function files(check: Check): void {
  check("a linked file is the same one, a copied file is another one", (disk, dir) => {
    const [path, link, copy] = ["file", "link", "copy"].map((name) => join(dir, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(path, "old");
    disk.link(path, link);
    disk.copy(path, copy);
    writeFileSync(path, "new");
    assert.deepEqual([read(link), read(copy)], ["new", "old"]);
    assert.throws(() => disk.link(path, link), { code: "EEXIST" });
    disk.unlink(path);
    assert.deepEqual(readdirSync(dir).sort(), ["copy", "link"]);
    assert.throws(() => disk.unlink(path), { code: "ENOENT" });
  });

  check("a renamed file takes the place of another", (disk, dir) => {
    writeFileSync(join(dir, "a"), "a");
    writeFileSync(join(dir, "b"), "b");
    disk.rename(join(dir, "a"), join(dir, "b"));
    assert.deepEqual([readdirSync(dir), read(join(dir, "b"))], [["b"], "a"]);
  });

  check("an opened file keeps its bytes, a replaced one doesn't", async (disk, dir) => {
    const path = join(dir, "file");
    const first = disk.open(path, "create");
    disk.write(first, Buffer.from("abcd"));
    disk.write(first, Buffer.from("X"), 1);
    disk.sync(first);
    await disk.syncLater(first);
    disk.close(first);
    assert.equal(read(path), "aXcd");
    disk.close(disk.open(path, "create"));
    assert.equal(read(path), "aXcd");
    disk.close(disk.open(path, "replace"));
    assert.equal(read(path), "");
  });

  check("a file written as a whole leaves no other file", (disk, dir) => {
    writeWhole(disk, join(dir, "file"), Buffer.from("whole"));
    assert.deepEqual([readdirSync(dir), read(join(dir, "file"))], [["file"], "whole"]);
  });
}

function read(path: string): string {
  return readFileSync(path, "utf8");
}
