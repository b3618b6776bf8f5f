import assert from "node:assert/strict";
import { test } from "node:test";
import { type Delta, DeltaLog } from "./delta-log.ts";

test("sends a snapshot to a subscriber that is too far behind", () => {
  const log = aLog();
  log.set("first", "1");
  log.commit();
  const sent = log.version;
  for (let index = 0; index < 5_000; index++) log.set(`key ${index}`, "1");
  log.commit();
  assert.deepEqual(countOf(log, sent), { full: true, upserts: 5_001 });
  assert.deepEqual(countOf(log, log.version), undefined);
  log.set("last", "1");
  log.commit();
  assert.deepEqual(countOf(log, log.version - 1), { full: false, upserts: 1 });
  assert.deepEqual(countOf(log, sent), { full: true, upserts: 5_002 });
});

test("publishes no value that changed back, and publishes a value once that was set twice", () => {
  const log = aLog();
  log.set("a", "1");
  assert.equal(log.commit(), true);
  log.set("a", "1");
  assert.equal(log.commit(), false);
  log.set("gone", undefined);
  assert.equal(log.commit(), false);
  const sent = log.version;
  log.set("a", "2");
  log.set("a", "3");
  assert.equal(log.versionOf("a"), sent + 1);
  assert.equal(log.commit(), true);
  assert.deepEqual(deltasOf(log, sent), [
    { full: false, upserts: ["3"], removals: [], more: false, version: sent + 1 },
  ]);
  log.set("a", undefined);
  log.commit();
  assert.deepEqual(deltasOf(log, sent)[0]?.removals, ["a"]);
  assert.equal(log.versionOf("a"), undefined);
});

test("subscribers at the same version share the encoded messages", () => {
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

function deltasOf(log: DeltaLog<string>, sent: number | undefined): Delta<string>[] {
  return log.after(sent).messages.map((message) => JSON.parse(message.toString()) as Delta<string>);
}

function countOf(log: DeltaLog<string>, sent: number | undefined) {
  const deltas = deltasOf(log, sent);
  const [first] = deltas;
  return first && { full: first.full, upserts: deltas.flatMap(({ upserts }) => upserts).length };
}
