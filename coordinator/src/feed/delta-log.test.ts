import assert from "node:assert/strict";
import { test } from "node:test";
import { type Delta, DeltaLog } from "./delta-log.ts";

test("sends everything to a subscriber that is too far behind, however the changes came", () => {
  const log = aLog();
  log.set("first", "1");
  log.commit();
  const told = log.version;
  for (let index = 0; index < 5_000; index++) log.set(`key ${index}`, "1");
  log.commit();
  assert.deepEqual(countOf(log, told), { full: true, upserts: 5_001 });
  assert.deepEqual(countOf(log, log.version), undefined);
  log.set("last", "1");
  log.commit();
  assert.deepEqual(countOf(log, log.version - 1), { full: false, upserts: 1 });
  assert.deepEqual(countOf(log, told), { full: true, upserts: 5_002 });
});

test("a value that changes back is not published, and a value that is set twice is published once", () => {
  const log = aLog();
  log.set("a", "1");
  assert.equal(log.commit(), true);
  log.set("a", "1");
  assert.equal(log.commit(), false);
  log.set("gone", undefined);
  assert.equal(log.commit(), false);
  const told = log.version;
  log.set("a", "2");
  log.set("a", "3");
  assert.equal(log.versionOf("a"), told + 1);
  assert.equal(log.commit(), true);
  assert.deepEqual(deltasOf(log, told), [
    { full: false, upserts: ["3"], removals: [], more: false, version: told + 1 },
  ]);
  log.set("a", undefined);
  log.commit();
  assert.deepEqual(deltasOf(log, told)[0]?.removals, ["a"]);
  assert.equal(log.versionOf("a"), undefined);
});

test("readers who are as far share the bytes", () => {
  const log = aLog();
  log.set("a", "1");
  log.commit();
  assert.equal(log.after(undefined).messages[0], log.after(undefined).messages[0]);
});

function aLog(): DeltaLog<string> {
  return new DeltaLog({
    encode: (value) => Buffer.from(value),
    message: (delta) => Buffer.from(JSON.stringify(delta)),
    firstVersion: 100,
  });
}

function deltasOf(log: DeltaLog<string>, told: number | undefined): Delta<string>[] {
  return log.after(told).messages.map((message) => JSON.parse(message.toString()) as Delta<string>);
}

function countOf(log: DeltaLog<string>, told: number | undefined) {
  const deltas = deltasOf(log, told);
  const [first] = deltas;
  return first && { full: first.full, upserts: deltas.flatMap(({ upserts }) => upserts).length };
}
