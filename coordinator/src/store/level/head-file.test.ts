import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Head } from "../format/findings.ts";
import { StoreError } from "../store-error.ts";
import { HeadFile } from "./head-file.ts";

test("returns the last written head after any number of openings", (t) => {
  const file = headFile(t);
  assert.equal(HeadFile.read(file), undefined);
  for (let opening = 0; opening < 3; opening++) {
    const opened = HeadFile.open(file, head(opening * 10));
    for (let i = 1; i <= opening + 1; i++) opened.write(head(opening * 10 + i));
    opened.close();
    assert.deepEqual(HeadFile.read(file), head(opening * 11 + 1));
  }
});

test("returns the previous head after a torn write", async (t) => {
  const file = headFile(t);
  const opened = HeadFile.open(file, head(1));
  opened.write(head(2));
  await opened.sync();
  const before = readFileSync(file);
  opened.write(head(3));
  opened.close();
  const after = readFileSync(file);
  const changed = [...after.keys()].filter((at) => after[at] !== before[at]);
  assert.ok(changed.length > 0);
  for (const cut of changed) {
    const torn = Buffer.from(before);
    after.copy(torn, 0, 0, cut);
    writeFileSync(file, torn);
    const found = HeadFile.read(file);
    assert.ok(found?.revision === 2 || found?.revision === 3);
  }
});

test("reports damage to both slots", (t) => {
  const file = headFile(t);
  const opened = HeadFile.open(file, head(1));
  opened.write(head(2));
  opened.close();
  const bytes = readFileSync(file);
  for (const at of [30, 4096 + 30]) bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(file, bytes);
  assert.throws(
    () => HeadFile.read(file),
    (error) => error instanceof StoreError && error.code === "CORRUPT",
  );
  truncateSync(file, 0);
  assert.throws(() => HeadFile.read(file), StoreError);
});

function headFile(t: { after(fn: () => void): void }): string {
  const dir = mkdtempSync(join(tmpdir(), "forage-head-"));
  t.after(() => rmSync(dir, { recursive: true }));
  return join(dir, "HEAD");
}

function head(revision: number): Head {
  return { store: "a-store", revision, chain: Buffer.alloc(32, revision).toString("hex") };
}
