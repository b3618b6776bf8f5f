import assert from "node:assert/strict";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { JournalKey, loadJournalKey, WrongKeyError } from "./journal-key.ts";

const text = Buffer.from("words");
const aKey = (fill: number) => new JournalKey(Buffer.alloc(32, fill), "here");

function directory(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "forage-key-"));
  t.after(() => rmSync(dir, { recursive: true }));
  return dir;
}

test("unseals a value with the same key for the same pod only", async () => {
  const sealed = await aKey(1).seal("a", text);
  assert.deepEqual(aKey(1).unseal("a", sealed), text);
  assert.notDeepEqual(await aKey(1).seal("a", text), sealed, "never twice the same");
  assert.throws(() => aKey(1).unseal("b", sealed), /another pod/);
  assert.throws(() => aKey(2).unseal("a", sealed), WrongKeyError);
  assert.throws(() => aKey(1).unseal("a", sealed.subarray(0, 30)), /too short/);
  for (let at = 8; at < sealed.length; at += 1) {
    const changed = Buffer.from(sealed);
    changed[at] = (changed[at] ?? 0) ^ 1;
    assert.throws(() => aKey(1).unseal("a", changed), /changed/, `byte ${at}`);
  }
});

test("a key that can't be written encrypts nothing, and is later written once", async () => {
  const disk = { isFull: true, writes: 0 };
  const key = new JournalKey(Buffer.alloc(32, 1), "here", async () => {
    disk.writes += 1;
    if (disk.isFull) throw new Error("no space left");
  });
  await assert.rejects(key.seal("a", text), /no space left/);
  disk.isFull = false;
  disk.writes = 0;
  const [sealed] = await Promise.all([key.seal("a", text), key.seal("b", text)]);
  assert.deepEqual(key.unseal("a", sealed), text);
  await key.seal("a", text);
  assert.equal(disk.writes, 1);
});

test("reports a key that can't be written, and writes it once that is possible", async (t) => {
  const dir = directory(t);
  // A directory in place of the temporary file makes every write fail.
  mkdirSync(join(dir, "journal.key.tmp"));
  const noted: string[] = [];
  const key = await loadJournalKey({ dir, noteDamage: (...note) => noted.push(note.join()) }).catch(String);
  assert.ok(key instanceof JournalKey, String(key));
  assert.equal(noted.length, 1);
  assert.match(noted[0] ?? "", /a new key can't be written: E/);
  rmdirSync(join(dir, "journal.key.tmp"));
  await key.seal("a", text);
  assert.equal((await loadJournalKey({ dir })).id, key.id);
});

test("creates a host's key once, readable for its owner only", async (t) => {
  const dir = join(directory(t), "data");
  const key = await loadJournalKey({ dir });
  assert.equal((await loadJournalKey({ dir })).id, key.id);
  assert.equal(statSync(join(dir, "journal.key")).mode & 0o777, 0o600);
  assert.match(readFileSync(join(dir, "journal.key"), "utf8"), /^[0-9a-f]{64}\n$/);
  rmSync(join(dir, "journal.key"));
  assert.notEqual((await loadJournalKey({ dir })).id, key.id);
});

test("prefers an operator's key, raw or in hex, to a generated one", async (t) => {
  const dir = directory(t);
  const file = join(dir, "theirs");
  const ours = await loadJournalKey({ dir, file });
  writeFileSync(file, Buffer.alloc(32, 7));
  const theirs = await loadJournalKey({ dir, file });
  assert.notEqual(theirs.id, ours.id);
  chmodSync(file, 0o600);
  writeFileSync(file, `${"07".repeat(32)}\n`);
  assert.equal((await loadJournalKey({ dir, file })).id, theirs.id);
});

test("rejects an operator's file without a valid key, and creates no replacement", async (t) => {
  const dir = directory(t);
  const file = join(dir, "theirs");
  writeFileSync(file, "too short");
  await assert.rejects(loadJournalKey({ dir, file }), /theirs can't be a key: it must hold 32 bytes/);
  assert.equal(readFileSync(file, "utf8"), "too short");
});

test("sets a damaged generated key aside and creates a new one", async (t) => {
  const dir = directory(t);
  const damageReports: string[] = [];
  writeFileSync(join(dir, "journal.key"), "too short");

  const key = await loadJournalKey({ dir, noteDamage: (path) => damageReports.push(path) });

  assert.deepEqual(damageReports, [join(dir, "journal.key")]);
  assert.equal(readFileSync(join(dir, "journal.key.corrupt"), "utf8"), "too short");
  assert.equal((await loadJournalKey({ dir })).id, key.id);
});
