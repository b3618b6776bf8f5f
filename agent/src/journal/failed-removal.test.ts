import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Journal } from "./journal.ts";
import { JournalKey } from "./journal-key.ts";

test("a state that can't be removed from the disk stays, and a later call removes it", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "forage-journal-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const key = new JournalKey(Buffer.alloc(32, 1), "key 1");
  const journal = await Journal.open({ dir, key, signal: t.signal });
  const state = { hostPorts: [], containers: {} };
  await journal.saveState("a", state);
  const file = journal.stateFile("a");
  const bytes = readFileSync(file);
  rmSync(file);
  mkdirSync(file);
  await assert.rejects(journal.remove("a"), { code: "WRITE_FAILED" });
  assert.deepEqual(journal.state("a"), state);
  rmSync(file, { recursive: true });
  writeFileSync(file, bytes);
  await journal.remove("a");
  assert.equal(journal.state("a"), undefined);
  assert.ok(!existsSync(file));
});
