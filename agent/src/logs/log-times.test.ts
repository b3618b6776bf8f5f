import assert from "node:assert/strict";
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { LogFile } from "./log-file.ts";
import { LogTimes } from "./log-times.ts";
import type { TrimMode } from "./trim-head.ts";

const AT = Date.UTC(2030, 0, 1);
const BORN = AT - 60_000;

function given(t: TestContext, mode: TrimMode = "collapse") {
  const dir = mkdtempSync(join(tmpdir(), "forage-times-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const path = join(dir, "a.log");
  writeFileSync(path, "");
  const open = () => {
    const file = new LogFile(path, { mode });
    const times = new LogTimes(file);
    return {
      file,
      times,
      /** Records that the file's current content arrived at `changedMs`. */
      note: async (changedMs: number, watched = true) =>
        times.note(
          async () => ({ ...(await file.bounds()), changedMs, bornMs: BORN }),
          watched ? changedMs : undefined,
        ),
    };
  };
  return { path, open, ...open() };
}

test("records each line's time, and a restarted agent reads it", async (t) => {
  const { path, times, note, open } = given(t);
  for (let i = 0; i < 1_000; i += 1) {
    appendFileSync(path, "12345678\n");
    await note(AT + i * 5_000);
  }
  await times.flush();
  for (const { times: seen } of [{ times }, open()]) {
    for (const i of [0, 1, 500, 998, 999]) {
      assert.deepEqual(await seen.at(i * 9 + 4), { end: i * 9 + 9, atMs: AT + i * 5_000 });
    }
    assert.equal(await seen.at(9_000), undefined);
    assert.equal((await seen.all()).length, 1_000);
  }
  assert.equal(statSync(`${path}.times`).mode & 0o777, 0o600);
});

test("bytes that arrived without a watch have an interval, which includes unrecorded ones", async (t) => {
  const { path, times, note, open } = given(t);
  appendFileSync(path, "old\n");
  await note(AT, false);
  await times.flush();
  appendFileSync(path, "not written down\n");
  await note(AT + 5_000);
  appendFileSync(path, "alone\n");
  const next = open();
  await next.note(AT + 90_000, false);
  appendFileSync(path, "watched\n");
  await next.note(AT + 95_000);
  assert.deepEqual(await next.times.all(), [
    { end: 4, atMs: AT, fromMs: BORN },
    { end: 27, atMs: AT + 90_000, fromMs: AT },
    { end: 35, atMs: AT + 95_000 },
  ]);
});

for (const mode of ["collapse", "punch", "truncate"] as const) {
  test(`after trimming by ${mode}, each byte keeps its time, also after a restart`, async (t) => {
    const { path, file, times, note, open } = given(t, mode);
    const line = `${"x".repeat(99)}\n`;
    for (let i = 0; i < 300; i += 1) {
      appendFileSync(path, line);
      await note(AT + i * 5_000);
      if (i % 100 === 99) await times.trimming(() => file.trim(8_000));
    }
    await times.flush();
    const { begin, end } = await file.bounds();
    assert.ok(end - begin < 20_000, "the head has gone");
    for (let position = begin; position < end; position += 50) {
      assert.equal((await times.at(position))?.atMs, AT + Math.floor(position / 100) * 5_000);
    }
    const next = open();
    const bounds = await next.file.bounds();
    for (let back = 1; back <= end - begin; back += 50) {
      const expected = AT + Math.floor((end - back) / 100) * 5_000;
      assert.equal((await next.times.at(bounds.end - back))?.atMs, expected, `${back} from the end`);
    }
    const all = await next.times.all();
    assert.ok(all.length <= (end - begin) / 100 + 1, "the entries of the removed head have gone too");
  });
}

test("while the head is moved, no index is on disk that a crash could make wrong", async (t) => {
  const { path, times, note } = given(t);
  appendFileSync(path, "a\n");
  await note(AT);
  await times.flush();
  assert.ok(existsSync(`${path}.times`));
  await assert.rejects(
    times.trimming(() => {
      assert.equal(existsSync(`${path}.times`), false);
      return Promise.reject(new Error("no room"));
    }),
    /no room/,
  );
  assert.equal((await times.at(0))?.atMs, AT);
  assert.ok(existsSync(`${path}.times`));
});

test("concurrent checks are recorded in the order in which they were made", async (t) => {
  const { path, file, times } = given(t);
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const noted: Promise<unknown>[] = [];
  for (let i = 0; i < 50; i += 1) {
    const see = async () => {
      appendFileSync(path, "12345678\n");
      const inspect = await file.inspect();
      // Some checks take several turns before they are recorded.
      for (let left = i % 2 === 0 ? 20 : 0; left > 0; left -= 1) await turn();
      return inspect;
    };
    noted.push(times.note(see, Date.now()));
    for (let left = 5; left > 0; left -= 1) await turn();
  }
  await Promise.all(noted);
  assert.equal((await times.all()).length, 50);
});

test("continues an interrupted index, and starts over for an emptied log", async (t) => {
  const { path, times, note, open } = given(t);
  for (let i = 0; i < 2; i += 1) {
    appendFileSync(path, "12345678\n");
    await note(AT + i * 5_000);
    await times.flush();
  }
  truncateSync(`${path}.times`, statSync(`${path}.times`).size - 3);
  const next = open();
  appendFileSync(path, "later\n");
  await next.note(AT + 60_000, false);
  await next.times.flush();
  assert.deepEqual(await open().times.all(), [
    { end: 9, atMs: AT },
    { end: 24, atMs: AT + 60_000, fromMs: AT },
  ]);
  writeFileSync(path, "new\n");
  await next.note(AT + 70_000);
  assert.deepEqual(await next.times.all(), [{ end: 4, atMs: AT + 70_000 }]);
});

test("bounds the index however many writes there are", async (t) => {
  const { path, times, note } = given(t);
  const line = "x\n".repeat(100);
  for (let i = 0; i < 700; i += 1) {
    appendFileSync(path, line);
    const { end } = { end: (i + 1) * 200 };
    for (let j = 0; j < 100; j += 1) {
      const inspect = {
        begin: 0,
        start: 0,
        end: end - 198 + j * 2,
        changedMs: AT + i * 1_000 + j,
        bornMs: BORN,
      };
      await times.note(async () => inspect, inspect.changedMs);
    }
  }
  await note(AT + 700_000);
  await times.flush();
  assert.ok((await times.all()).length <= 32_768);
  assert.ok(statSync(`${path}.times`).size < 400_000, `${statSync(`${path}.times`).size}`);
  assert.equal((await times.at(139_990))?.atMs, AT + 699_095);
});
