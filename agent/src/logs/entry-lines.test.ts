import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { systemClock } from "../clock.ts";
import { EntryLines, type EntryLinesOptions } from "./entry-lines.ts";
import { decodeEntry, encodeEntries, type LogStream } from "./log-entry.ts";
import { LogFile } from "./log-file.ts";
import { tailEntries } from "./tail-entries.ts";

const T0 = Date.UTC(2026, 0, 2, 3, 4, 5);
const STAMP = "2026-01-02T03:04:05.000Z";
const out = (text: string, seconds = 0) => encodeEntries(Buffer.from(text), "stdout", T0 + seconds * 1000);
const err = (text: string, seconds = 0) => encodeEntries(Buffer.from(text), "stderr", T0 + seconds * 1000);

test("each line of a stream becomes an entry, and an unfinished line a partial entry", () => {
  assert.equal(out("a\n\nb").toString(), `${STAMP} stdout F a\n${STAMP} stdout F \n${STAMP} stdout P b\n`);
  assert.equal(out("").length, 0);
  const long = out(`${"x".repeat(40_000)}\n`)
    .toString()
    .split("\n");
  assert.deepEqual(
    long.map((line) => [line.slice(25, 33), line.length]),
    [
      ["stdout P", 34 + 16_384],
      ["stdout P", 34 + 16_384],
      ["stdout F", 34 + 7_232],
      ["", 0],
    ],
  );
});

test("decodes encoded entries, and returns other lines, which are the runtime's own, unchanged", () => {
  const entry = decodeEntry(Buffer.from(`${STAMP} stderr P é\0 stdout F x`));
  assert.deepEqual(
    { ...entry, text: Buffer.from(entry.text).toString() },
    { stream: "stderr", stamp: STAMP, whole: false, text: "é\0 stdout F x" },
  );
  for (const line of ["", "exec format error", `${STAMP} stdin F x`, `${STAMP} stdout X x`]) {
    const { text, ...rest } = decodeEntry(Buffer.from(line));
    assert.deepEqual(rest, { stream: "stderr", stamp: "", whole: true });
    assert.equal(Buffer.from(text).toString(), line);
  }
});

function shown(bytes: Buffer, options: EntryLinesOptions = {}, step = bytes.length): string {
  const lines = new EntryLines(options);
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += step) parts.push(lines.add(bytes.subarray(at, at + step), at));
  return Buffer.concat([...parts, lines.flush()]).toString();
}

const cases: readonly {
  what: string;
  bytes: readonly Buffer[];
  options?: EntryLinesOptions;
  expected: string;
}[] = [
  { what: "both", bytes: [out("a\n"), err("b\n"), out("c\n")], expected: "a\nb\nc\n" },
  {
    what: "one stream",
    bytes: [out("a\n"), err("b\n"), out("c\n")],
    options: { stream: "stderr" },
    expected: "b\n",
  },
  { what: "pieces of a line", bytes: [out("a"), err("b\n"), out("c\n")], expected: "b\nac\n" },
  { what: "a last line without an end", bytes: [out("a\nb")], expected: "a\nb" },
  { what: "two of them", bytes: [out("a"), err("b")], expected: "a\nb" },
  { what: "empty lines", bytes: [out("\n"), err("\n\n")], expected: "\n\n\n" },
  {
    what: "a write that was cut off",
    bytes: [out("a\n").subarray(0, 20), Buffer.from("\n"), out("b\n")],
    expected: `${STAMP.slice(0, 20)}\nb\n`,
  },
  {
    what: "times",
    bytes: [out("a\nb"), err("c\n", 1), out("d\n", 2), Buffer.from("raw\n")],
    options: { timestamps: true },
    expected: `${STAMP} a\n${STAMP.replace("05.", "06.")} c\n${STAMP} bd\n- raw\n`,
  },
  {
    what: "since",
    bytes: [out("a\nb"), err("c\n", 1), out("d\n", 2), out("e\n", 3)],
    options: { since: STAMP.replace("05.", "06.") },
    expected: "c\ne\n",
  },
  {
    what: "from a position",
    bytes: [out("a\n"), err("b\n"), out("c\n")],
    options: { from: { stdout: 40, stderr: 0 } },
    expected: "b\nc\n",
  },
];
for (const { what, bytes, options, expected } of cases) {
  test(`restores the lines that the container wrote: ${what}`, () => {
    const all = Buffer.concat(bytes);
    for (const step of [all.length, 1, 7]) assert.equal(shown(all, options, step), expected);
  });
}

test("continues an unfinished line that was already shown, unless the other stream wrote in between", () => {
  const lines = new EntryLines({ timestamps: true });
  const feed = feeder(lines);
  assert.equal(feed(out("> ")) + lines.flush(), `${STAMP} > `);
  assert.equal(feed(out("yes\n")), "yes\n");
  assert.equal(feed(out("> ")) + lines.flush(), `${STAMP} > `);
  assert.equal(feed(err("oh\n")), `\n${STAMP} oh\n`);
  assert.equal(feed(out("no\n")), `${STAMP} no\n`);
});

test("buffers an unfinished line up to a limit", () => {
  const lines = new EntryLines({});
  const feed = feeder(lines);
  let bytes = 0;
  for (let i = 0; i < 100; i += 1) bytes += feed(out("x".repeat(10_000))).length;
  assert.ok(bytes > 900_000, `${bytes}`);
});

function feeder(lines: EntryLines): (bytes: Buffer) => string {
  let at = 0;
  return (bytes) => {
    at += bytes.length;
    return lines.add(bytes, at - bytes.length).toString();
  };
}

const TAILS: readonly { lines: number; stream?: LogStream; expected: string }[] = [
  { lines: 0, expected: "" },
  { lines: 1, expected: "tail" },
  { lines: 2, expected: "e2\ntail" },
  { lines: 3, expected: "o3 end\ne2\ntail" },
  { lines: 4, expected: "e1\no3 end\ne2\ntail" },
  { lines: 5, expected: "o2\ne1\no3 end\ne2\ntail" },
  { lines: 99, expected: "o1\no2\ne1\no3 end\ne2\ntail" },
  { lines: 1, stream: "stderr", expected: "e2\n" },
  { lines: 2, stream: "stderr", expected: "e1\ne2\n" },
  { lines: 2, stream: "stdout", expected: "o3 end\ntail" },
  { lines: 9, stream: "stdout", expected: "o1\no2\no3 end\ntail" },
];
for (const { lines, stream, expected } of TAILS) {
  test(`finds the last ${lines} lines of ${stream ?? "both streams"}`, async (t) => {
    const path = logOf(t, [out("o1\no2\no3"), err("e1\n"), out(" end\n"), err("e2\n"), out("tail")]);
    assert.equal(await read(path, { lines, ...(stream && { stream }) }), expected);
  });
}

test("finds the last lines across many steps, also of a stream with few lines", async (t) => {
  const loud = Array.from({ length: 20_000 }, (_, i) => `${i}\n`).join("");
  const path = logOf(t, [err("first\n"), out(loud), err("mid\n"), out(loud)]);
  assert.equal(await read(path, { lines: 2, stream: "stderr" }), "first\nmid\n");
  assert.equal(await read(path, { lines: 3 }), "19997\n19998\n19999\n");
  assert.equal(await read(path, { lines: 20_001 }), `mid\n${loud}`);
  assert.equal((await read(path, { lines: 25_000 })).split("\n").length, 25_001);
});

test("returns lines that are longer than a step as a whole", async (t) => {
  const long = "y".repeat(200_000);
  const path = logOf(t, [out(`a\n${long}\nb\n`)]);
  assert.equal(await read(path, { lines: 2 }), `${long}\nb\n`);
});

function logOf(t: TestContext, entries: readonly Buffer[]): string {
  const dir = mkdtempSync(join(tmpdir(), "forage-entries-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const path = join(dir, "1.log");
  writeFileSync(path, Buffer.concat(entries));
  return path;
}

async function read(path: string, options: { lines: number; stream?: LogStream }): Promise<string> {
  const parts: Uint8Array[] = [];
  const { signal } = new AbortController();
  for await (const part of tailEntries(new LogFile(path), systemClock, { follow: false, signal, ...options }))
    parts.push(part);
  return Buffer.concat(parts).toString();
}
