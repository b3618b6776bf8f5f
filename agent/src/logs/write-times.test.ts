import assert from "node:assert/strict";
import { test } from "node:test";
import {
  decodeWriteTimes,
  encodeWriteTimes,
  positionSince,
  thinWriteTimes,
  type WriteTime,
  writeTimeOf,
} from "./write-times.ts";

const AT = Date.UTC(2030, 0, 1);
/** Returns a write of ten bytes every second. */
const steady = (count: number): WriteTime[] =>
  Array.from({ length: count }, (_, i) => ({ end: (i + 1) * 10, atMs: AT + i * 1_000 }));

test("decodes arrivals as they were encoded, frame by frame, whichever way clocks and positions moved", () => {
  const list: WriteTime[] = [
    { end: -5_000_000_000, atMs: AT },
    { end: 3, atMs: AT - 86_400_000, fromMs: AT - 90_000_000 },
    { end: 4, atMs: AT, fromMs: AT },
    { end: 2 ** 40, atMs: AT + 1 },
  ];
  const bytes = Buffer.concat([
    encodeWriteTimes(list.slice(0, 1), 7),
    encodeWriteTimes(list.slice(1, 3), 7),
    encodeWriteTimes(list.slice(3), 7),
  ]);
  assert.deepEqual(decodeWriteTimes(bytes, 7), { writeTimes: list, wholeBytes: bytes.length });
  assert.equal(decodeWriteTimes(bytes, 0).writeTimes[1]?.end, -4);
});

test("reads a truncated or damaged index as far as it is intact", () => {
  const whole = encodeWriteTimes(steady(100), 0);
  const more = encodeWriteTimes(steady(200).slice(100), 0);
  for (let cut = 0; cut < more.length; cut += 7) {
    const { writeTimes, wholeBytes } = decodeWriteTimes(Buffer.concat([whole, more.subarray(0, cut)]), 0);
    assert.deepEqual([writeTimes.length, wholeBytes], [100, whole.length], `${cut}`);
  }
  const padded = decodeWriteTimes(Buffer.concat([whole, Buffer.alloc(100)]), 0);
  assert.deepEqual([padded.writeTimes.length, padded.wholeBytes], [100, whole.length]);
  assert.equal(decodeWriteTimes(Buffer.from("no index at all"), 0).writeTimes.length, 0);
  // Only the length was written, without checksum and payload. The checksum of an empty payload is 0.
  const head = Buffer.from([0, 0, 0, 9, 0, 0, 0, 0]);
  assert.equal(decodeWriteTimes(Buffer.concat([whole, head]), 0).wholeBytes, whole.length);
});

test("returns the arrival that contains a byte", () => {
  const list = steady(3);
  const at = (position: number) => writeTimeOf(list, position)?.atMs;
  assert.deepEqual(
    [-100, 0, 9, 10, 29].map(at),
    [0, 0, 0, 1_000, 2_000].map((ms) => AT + ms),
  );
  assert.equal(at(30), undefined);
  assert.equal(writeTimeOf([], 0), undefined);
});

test("entries newer than a given time begin after all older ones", () => {
  const list = steady(3);
  assert.equal(positionSince(list, AT, -7), -7);
  assert.equal(positionSince(list, AT + 1, 0), 10);
  assert.equal(positionSince(list, AT + 2_000, 0), 20);
  assert.equal(positionSince(list, AT + 2_001, 0), undefined);
  assert.equal(positionSince(list, AT + 1_000, 15), 15, "the head has gone");
});

test("a list that is too long becomes less exact for old bytes, but loses none", () => {
  const most = 64;
  let list: readonly WriteTime[] = [];
  for (const arrival of steady(5_000)) list = thinWriteTimes([...list, arrival], most);
  assert.ok(list.length <= most && list.length >= most / 2, `${list.length}`);
  assert.equal(list.at(-1)?.end, 50_000);
  for (let position = 0; position < 50_000; position += 10) {
    const found = writeTimeOf(list, position);
    const trueMs = AT + position * 100;
    assert.ok(found && (found.fromMs ?? found.atMs) <= trueMs && found.atMs >= trueMs, `${position}`);
  }
  assert.equal(writeTimeOf(list, 49_990)?.fromMs, undefined, "the newest is exact");
  assert.equal(thinWriteTimes(steady(3), 1).length, 1);
});
