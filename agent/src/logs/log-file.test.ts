import assert from "node:assert/strict";
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { findLastLines, readLastLines } from "./last-lines.ts";
import { LogFile } from "./log-file.ts";
import type { TrimMode } from "./trim-head.ts";

const KEEP = 1_000_000;

function given(t: TestContext, options: { mode?: TrimMode; dir?: string } = {}) {
  const dir = mkdtempSync(join(options.dir ?? tmpdir(), "forage-log-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const path = join(dir, "a.log");
  return { path, file: new LogFile(path, options.mode ? { mode: options.mode } : {}) };
}

/** Returns numbered lines of about 20 bytes. */
const lines = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => `line ${from + i} ${"x".repeat(10)}\n`).join("");

async function whole(file: LogFile): Promise<string> {
  const { begin, end } = await file.bounds();
  return (await file.read(begin, end - begin)).data.toString();
}

for (const [what, options] of [
  ["collapse", { mode: "collapse" }],
  ["punch", { mode: "punch" }],
  ["truncate", { mode: "truncate" }],
  ["on tmpfs", { mode: "collapse", dir: "/dev/shm" }],
] as const) {
  test(`trimming by ${what} loses nothing, keeps positions valid and frees disk space`, async (t) => {
    const { path, file } = given(t, options);
    writeFileSync(path, lines(0, 10_000));
    const before = await file.bounds();
    assert.ok(await file.trim(KEEP));
    const after = await file.bounds();
    assert.deepEqual([after.begin, after.end], [before.begin, before.end]);
    assert.ok(after.end - after.start <= 8192, `${after.end - after.start} bytes are left`);
    assert.ok(statSync(path).blocks * 512 <= 3 * 8192);
    appendFileSync(path, lines(10_000, 10));
    assert.equal(await whole(file), lines(0, 10_010));
    const from = before.end - 50;
    assert.equal((await file.read(from, 100)).data.toString(), lines(0, 10_010).slice(from, from + 100));
  });

  test(`repeated trimming by ${what} bounds the rotated part, which begins with a line`, async (t) => {
    const { path, file } = given(t, options);
    for (let round = 0; round < 3; round += 1) {
      appendFileSync(path, lines(round * 10_000, 10_000));
      await file.trim(50_000);
    }
    const { begin, start } = await file.bounds();
    assert.ok(start - begin <= 50_000 + 8192 && start - begin > 40_000, `${start - begin}`);
    const text = await whole(file);
    assert.match(text, /^line \d+ x{10}\n/);
    assert.equal(text, lines(0, 30_000).slice(-text.length));
    assert.equal(statSync(file.rotatedPath).mode & 0o777, 0o600);
    assert.equal((await file.read(0, 10)).position, begin);
  });

  test(`after trimming by ${what}, a reader after a restart gets the same text`, async (t) => {
    const { path, file } = given(t, options);
    writeFileSync(path, lines(0, 10_000));
    await file.trim(KEEP);
    appendFileSync(path, lines(10_000, 5));
    assert.equal(await whole(new LogFile(path)), lines(0, 10_005));
    assert.equal(await readLastLines(new LogFile(path), 2, 1_000), lines(10_003, 2));
  });
}

test("reads a file that is missing, empty or smaller than a block", async (t) => {
  const { path, file } = given(t);
  assert.deepEqual(await file.bounds(), { begin: 0, start: 0, end: 0 });
  assert.equal((await file.read(0, 10)).data.length, 0);
  writeFileSync(path, "");
  assert.equal(await file.trim(KEEP), undefined);
  writeFileSync(path, "a\n");
  assert.equal(await file.trim(KEEP), undefined);
  assert.equal(existsSync(file.rotatedPath), false);
});

test("a file that another program emptied is read from its start again", async (t) => {
  const { path, file } = given(t);
  writeFileSync(path, "old old old\n");
  const { end } = await file.bounds();
  writeFileSync(path, "new\n");
  assert.equal((await file.read(end, 100)).data.toString(), "new\n");
});

test("removal deletes both files", async (t) => {
  const { path, file } = given(t);
  writeFileSync(path, lines(0, 10_000));
  await file.trim(KEEP);
  await file.remove();
  assert.equal(existsSync(path) || existsSync(file.rotatedPath), false);
  await file.remove();
});

for (const [what, text, count, maxBytes, expected] of [
  ["none", "a\nb\n", 0, 100, ""],
  ["one", "a\nb\n", 1, 100, "b\n"],
  ["an unfinished one", "a\nb", 1, 100, "b"],
  ["more than there are", "a\nb\n", 9, 100, "a\nb\n"],
  ["empty ones", "a\n\n\n", 2, 100, "\n\n"],
  ["no line break at all", "abc", 3, 100, "abc"],
  ["as bytes allow, with whole lines", "aaaa\nbbbb\ncc\n", 9, 7, "cc\n"],
  ["exactly as bytes allow", "aaaa\nbbbb\ncc\n", 9, 8, "bbbb\ncc\n"],
  ["one that is longer than allowed", `${"é".repeat(50)}\n`, 1, 10, "éééé\n"],
  ["nothing", "", 3, 100, ""],
] as const) {
  test(`finds the last lines: ${what}`, async (t) => {
    const { path, file } = given(t);
    writeFileSync(path, text);
    assert.equal(await readLastLines(file, count, maxBytes), expected);
  });
}

test("the last lines are those of one moment, even if others are written meanwhile", async (t) => {
  const { path } = given(t);
  writeFileSync(path, "a\nb\nc\n");
  class Growing extends LogFile {
    override async bounds() {
      const bounds = await super.bounds();
      appendFileSync(path, "later\nlater\nlater\n");
      return bounds;
    }
  }
  assert.equal(await readLastLines(new Growing(path), 2, 100), "b\nc\n");
});

test("finds the last lines over many reads and across the rotation", async (t) => {
  const { path, file } = given(t);
  writeFileSync(path, lines(0, 20_000));
  await file.trim(KEEP);
  appendFileSync(path, lines(20_000, 20_000));
  const text = lines(0, 40_000);
  for (const count of [1, 10_000, 20_000, 20_100, 30_000]) {
    assert.equal(
      await findLastLines(file, count),
      text.length - lines(40_000 - count, count).length,
      `${count}`,
    );
  }
  assert.equal(readFileSync(path, "utf8").includes("line 100 "), false);
});

test("a check during a trim returns the state after the trim", async (t) => {
  const { path, file } = given(t);
  writeFileSync(path, lines(0, 10_000));
  const trimmed = file.trim(KEEP);
  const bounds = await file.bounds();
  await trimmed;
  assert.ok(bounds.start > 0, `${bounds.start}`);
});
