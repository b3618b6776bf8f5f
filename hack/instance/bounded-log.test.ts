import assert from "node:assert/strict";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { boundLog } from "./bounded-log.ts";

test("a log that grew too long is emptied after its end was copied, and its writer continues", (t) => {
  const dir = mkdtempSync(join(tmpdir(), "forage-log-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const path = join(dir, "log");
  const writer = openSync(path, "a");
  const limits = { maxBytes: 10, keptBytes: 4 };

  writeSync(writer, "0123456789");
  boundLog(path, limits);
  assert.equal(existsSync(`${path}.1`), false);
  writeSync(writer, "abcd");
  boundLog(path, limits);
  writeSync(writer, "next");
  closeSync(writer);

  assert.equal(readFileSync(`${path}.1`, "utf8"), "abcd");
  assert.equal(readFileSync(path, "utf8"), "next");
  boundLog(join(dir, "absent"), limits);
});
