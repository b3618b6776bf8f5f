import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { JournalFiles } from "../src/journal/journal-files.ts";

export interface JournalDisk {
  readonly files: JournalFiles;
  /** A directory that doesn't exist yet. */
  readonly dir: string;
}

const LIMIT = { timeout: 60_000 };

/** Tests the contract of the journal's files. `open` creates a separate disk for each test. */
export function testJournalFiles(name: string, open: (t: TestContext) => Promise<JournalDisk>): void {
  const check = (what: string, run: (disk: JournalDisk) => Promise<void>) =>
    test(`${name}: ${what}`, LIMIT, async (t) => {
      const disk = await open(t);
      await disk.files.makeDirectory(disk.dir);
      await run(disk);
    });

  check("reads and lists what was written, and nothing of other directories", async ({ files, dir }) => {
    await files.makeDirectory(dir);
    assert.deepEqual(await files.list(dir), []);
    await files.write(dir, [aFile("a", "one"), aFile("b", "two")]);
    const inner = join(dir, "inner");
    await files.makeDirectory(inner);
    await files.write(inner, [aFile("c", "three")]);
    assert.deepEqual([...(await files.list(inner))], ["c"]);
    assert.deepEqual((await files.list(dir)).filter((it) => it !== "inner").sort(), ["a", "b"]);
    assert.equal(String(await files.read(join(dir, "b"))), "two");
  });

  check("a write replaces a file as a whole", async ({ files, dir }) => {
    await files.write(dir, [aFile("a", "a long text")]);
    await files.write(dir, [aFile("a", "short")]);
    assert.equal(String(await files.read(join(dir, "a"))), "short");
  });

  check("written bytes do not change if the caller changes its buffer", async ({ files, dir }) => {
    const bytes = Buffer.from([0, 255, 10]);
    await files.write(dir, [{ name: "a", bytes }]);
    bytes.fill(7);
    const read = await files.read(join(dir, "a"));
    assert.deepEqual([...read], [0, 255, 10]);
    read.fill(7);
    assert.deepEqual([...(await files.read(join(dir, "a")))], [0, 255, 10]);
  });

  check("a missing file is named by the error's code", async ({ files, dir }) => {
    await assert.rejects(files.read(join(dir, "a")), { code: "ENOENT" });
    await assert.rejects(files.setAside(dir, "a"), { code: "ENOENT" });
    assert.deepEqual(await files.list(dir), []);
  });

  check("remove deletes a file, and accepts a missing one", async ({ files, dir }) => {
    await files.write(dir, [aFile("a", "one")]);
    await files.remove(join(dir, "a"));
    await files.remove(join(dir, "a"));
    await files.sync(dir);
    assert.deepEqual(await files.list(dir), []);
    await assert.rejects(files.read(join(dir, "a")), { code: "ENOENT" });
  });

  check("a file that is set aside keeps its content under a new name", async ({ files, dir }) => {
    await files.write(dir, [aFile("a", "unreadable")]);
    const path = await files.setAside(dir, "a");
    assert.equal(String(await files.read(path)), "unreadable");
    assert.deepEqual([...(await files.list(dir))], [path.slice(dir.length + 1)]);
  });
}

function aFile(name: string, text: string) {
  return { name, bytes: Buffer.from(text) };
}
