import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogFile } from "./log-file.ts";
import { findLine } from "./tail.ts";

const READS_MAX = 9;

/** A log with the bytes. `endsEarly` stands for a log that is trimmed after its bounds were read. */
function aLog(text: string, { endsEarly = false } = {}): LogFile {
  const bytes = Buffer.from(text);
  let reads = 0;
  const log: Pick<LogFile, "bounds" | "read"> = {
    bounds: async () => ({ begin: 0, start: 0, end: bytes.length }),
    read: async (position, maxBytes) => {
      reads++;
      assert.ok(reads <= READS_MAX, "the log is read without an end");
      const data = endsEarly ? Buffer.alloc(0) : bytes.subarray(position, position + Math.min(maxBytes, 4));
      return { data, position };
    },
  };
  return log as LogFile;
}

test("finds the first beginning of a line at or after a position", async () => {
  const log = aLog("one\ntwo\nthree");
  const found = await Promise.all([0, 1, 4, 5, 8].map((position) => findLine(log, position)));
  assert.deepEqual(found, [0, 4, 4, 8, 8]);
});

test("returns the log's end if no line begins after the position", async () => {
  assert.equal(await findLine(aLog("one\ntwo"), 5), 7);
  assert.equal(await findLine(aLog("one\ntwo", { endsEarly: true }), 2), 7);
});
