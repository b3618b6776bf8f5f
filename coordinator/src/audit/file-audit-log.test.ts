import assert from "node:assert/strict";
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ChainCheck, openEntry } from "@forage/common/audit-chain";
import { VirtualClock } from "@forage/common/virtual-clock";
import { pino } from "pino";
import { FileAuditLog, type FileAuditLogOptions } from "./file-audit-log.ts";

test("reads entries in pages as they were written, even after a restart", async (t) => {
  const { open } = await aDirectory(t);
  const first = await open();
  for (let i = 1; i <= 5; i++) first.append({ event: "call", method: `/a/M${i}` });
  await first.close();
  const second = await open();
  second.append({ event: "call", method: "/a/M6" });
  const page = await second.read(0, 4);
  assert.deepEqual([methodsOf(page.lines), page.newest], [["/a/M1", "/a/M2", "/a/M3", "/a/M4"], 6]);
  assert.deepEqual(methodsOf((await second.read(4, 4)).lines), ["/a/M5", "/a/M6"]);
  assert.deepEqual((await second.read(6, 4)).lines, []);
  assert.equal(problemOf((await second.read(0, 10)).lines), undefined);
});

test("removes the oldest files beyond the limit, and keeps one chain", async (t) => {
  const { dir, open } = await aDirectory(t);
  const log = await open({ maxSegmentBytes: 1_000, maxSegments: 3 });
  for (let i = 1; i <= 40; i++) {
    log.append({ event: "call", method: `/a/M${i}` });
    await log.read(0, 1);
  }
  assert.equal((await readdir(dir)).length, 3);
  const { lines, newest } = await log.read(0, 1_000);
  assert.equal(newest, 40);
  assert.ok(lines.length > 5 && lines.length < 20, `${lines.length} entries`);
  assert.equal(methodsOf(lines).at(-1), "/a/M40");
  assert.equal(problemOf(lines), undefined);
  const [first] = lines;
  assert.deepEqual((await log.read((openEntry(first ?? "")?.sequence ?? 0) - 1, 1)).lines, [first]);
});

test("does not return an entry that is written while a page is read as the newest", async (t) => {
  const { open } = await aDirectory(t);
  // Each entry is in its own file, and the files are read one after the other.
  const log = await open({ maxSegmentBytes: 1, maxSegments: 100 });
  for (let i = 0; i < 30; i++) {
    log.append({ event: "call", method: "/a/M" });
    await log.read(0, 1);
  }
  const reading = log.read(0, 1_000);
  await new Promise(setImmediate);
  log.append({ event: "call", method: "/a/Later" });
  const { lines, newest } = await reading;
  assert.ok(lines.length >= newest, `${lines.length} entries, and the newest is ${newest}`);
});

test("removes an entry that a crash left incomplete", async (t) => {
  const { dir, open } = await aDirectory(t);
  const first = await open();
  first.append({ event: "call", method: "/a/M1" });
  await first.close();
  await appendFile(join(dir, "0000000000000001.jsonl"), '{"sequence":2,"ti');
  const second = await open();
  second.append({ event: "call", method: "/a/M2" });
  const { lines } = await second.read(0, 10);
  assert.deepEqual(methodsOf(lines), ["/a/M1", "/a/M2"]);
  assert.equal(problemOf(lines), undefined);
});

test("reports a changed last entry, also in a verification of the log", async (t) => {
  const { dir, open, logged } = await aDirectory(t);
  const first = await open();
  first.append({ event: "call", method: "/a/M1" });
  await first.close();
  const path = join(dir, "0000000000000001.jsonl");
  await writeFile(path, (await readFile(path, "utf8")).replace("/a/M1", "/a/M9"));
  const second = await open();
  second.append({ event: "call", method: "/a/M2" });
  const { lines } = await second.read(0, 10);
  assert.match(problemOf(lines) ?? "", /was changed/);
  assert.equal(openEntry(lines[1] ?? "")?.sequence, 2);
  assert.deepEqual(logged(), ["audit-log-damaged"]);
});

test("keeps pending entries while they can't be written, and counts lost ones", async (t) => {
  const { dir, open, clock, logged } = await aDirectory(t);
  const log = await open({ maxPending: 3 });
  await rmdir(dir);
  for (let i = 1; i <= 5; i++) log.append({ event: "call", method: `/a/M${i}` });
  clock.advance(5_000);
  assert.deepEqual(await log.read(0, 10), { lines: [], newest: 0 });
  await mkdir(dir);
  clock.advance(5_000);
  const { lines } = await log.read(0, 10);
  assert.deepEqual(methodsOf(lines), ["/a/M1", "/a/M2", "/a/M3", undefined]);
  assert.deepEqual(
    lines
      .map(openEntry)
      .map((entry) => [entry?.event, entry?.count])
      .at(-1),
    ["entries-lost", 2],
  );
  assert.equal(problemOf(lines), undefined);
  assert.deepEqual(logged(), ["audit-log-not-written"], "it is logged once");
});

async function aDirectory(t: TestContext) {
  const root = await mkdtemp(join(tmpdir(), "audit-"));
  t.after(() => rm(root, { recursive: true, force: true }));
  const dir = join(root, "audit");
  const clock = new VirtualClock();
  const events: string[] = [];
  const log = pino({ level: "error" }, { write: (line: string) => void events.push(JSON.parse(line).event) });
  const open = (options: Partial<FileAuditLogOptions> = {}) =>
    FileAuditLog.open({ dir, clock, log, ...options });
  return { dir, clock, open, logged: () => events };
}

function methodsOf(lines: readonly string[]): (string | undefined)[] {
  return lines.map((line) => openEntry(line)?.method);
}

function problemOf(lines: readonly string[]): string | undefined {
  const check = new ChainCheck();
  for (const line of lines) {
    const result = check.check(line);
    if ("problem" in result) return result.problem;
  }
  return undefined;
}
