import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { StateFiles } from "../src/feed/state-file.ts";

export interface StateDisk {
  readonly files: StateFiles;
  /** A directory that doesn't exist yet. */
  readonly dir: string;
}

/** Tests the contract of files that store a state of the coordinator. `open` creates a separate disk for each test. */
export function testStateFiles(name: string, open: (t: TestContext) => StateDisk): void {
  const check = (what: string, run: (disk: StateDisk) => Promise<void>) =>
    test(`${name}: ${what}`, { timeout: 60_000 }, async (t) => {
      const disk = open(t);
      await disk.files.makeDirectory(disk.dir);
      await run(disk);
    });

  check("a missing file is named by the error's code", async ({ files, dir }) => {
    await assert.rejects(files.read(join(dir, "a")), { code: "ENOENT" });
  });

  check(
    "a write replaces the file as a whole, with the bytes at the time of the call",
    async ({ files, dir }) => {
      const bytes = Buffer.from("a long text");
      await files.write(dir, [{ name: "a", bytes }]);
      bytes.fill(0);
      assert.equal(String(await files.read(join(dir, "a"))), "a long text");
      await files.write(dir, [{ name: "a", bytes: Buffer.from("short") }]);
      assert.equal(String(await files.read(join(dir, "a"))), "short");
      await files.makeDirectory(dir);
      assert.equal(String(await files.read(join(dir, "a"))), "short");
    },
  );
}
