import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Arrival,
  arrivalOf,
  decodeArrivals,
  encodeArrivals,
  positionSince,
  thinArrivals,
} from "./arrivals.ts";

const AT = Date.UTC(2030, 0, 1);
/** Ten bytes every second. */
const steady = (count: number): Arrival[] =>
  Array.from({ length: count }, (_, i) => ({ end: (i + 1) * 10, atMs: AT + i * 1_000 }));

test("arrivals are read as they were written, frame by frame, in whatever direction clocks and positions went", () => {
  const list: Arrival[] = [
    { end: -5_000_000_000, atMs: AT },
    { end: 3, atMs: AT - 86_400_000, fromMs: AT - 90_000_000 },
    { end: 4, atMs: AT, fromMs: AT },
    { end: 2 ** 40, atMs: AT + 1 },
  ];
  const bytes = Buffer.concat([
    encodeArrivals(list.slice(0, 1), 7),
    encodeArrivals(list.slice(1, 3), 7),
    encodeArrivals(list.slice(3), 7),
  ]);
  assert.deepEqual(decodeArrivals(bytes, 7), { arrivals: list, wholeBytes: bytes.length });
  assert.equal(decodeArrivals(bytes, 0).arrivals[1]?.end, -4);
});

test("an index that was cut off, or ends in rubbish, is read as far as it is whole", () => {
  const whole = encodeArrivals(steady(100), 0);
  const more = encodeArrivals(steady(200).slice(100), 0);
  for (let cut = 0; cut < more.length; cut += 7) {
    const { arrivals, wholeBytes } = decodeArrivals(Buffer.concat([whole, more.subarray(0, cut)]), 0);
    assert.deepEqual([arrivals.length, wholeBytes], [100, whole.length], `${cut}`);
  }
  assert.equal(decodeArrivals(Buffer.concat([whole, Buffer.alloc(100)]), 0).arrivals.length, 100);
  assert.equal(decodeArrivals(Buffer.from("no index at all"), 0).arrivals.length, 0);
  // The length was written, and neither checksum nor payload: the checksum of nothing is 0.
  const head = Buffer.from([0, 0, 0, 9, 0, 0, 0, 0]);
  assert.equal(decodeArrivals(Buffer.concat([whole, head]), 0).wholeBytes, whole.length);
});

test("each byte has the arrival that brought it", () => {
  const list = steady(3);
  const at = (position: number) => arrivalOf(list, position)?.atMs;
  assert.deepEqual(
    [-100, 0, 9, 10, 29].map(at),
    [0, 0, 0, 1_000, 2_000].map((ms) => AT + ms),
  );
  assert.equal(at(30), undefined);
  assert.equal(arrivalOf([], 0), undefined);
});

test("what is newer than a time begins behind all that is older", () => {
  const list = steady(3);
  assert.equal(positionSince(list, AT, -7), -7);
  assert.equal(positionSince(list, AT + 1, 0), 10);
  assert.equal(positionSince(list, AT + 2_000, 0), 20);
  assert.equal(positionSince(list, AT + 2_001, 0), undefined);
  assert.equal(positionSince(list, AT + 1_000, 15), 15, "the head has gone");
});

test("a list that grew too long loses exactness where it is old, and no bytes", () => {
  const most = 64;
  let list: readonly Arrival[] = [];
  for (const arrival of steady(5_000)) list = thinArrivals([...list, arrival], most);
  assert.ok(list.length <= most && list.length >= most / 2, `${list.length}`);
  assert.equal(list.at(-1)?.end, 50_000);
  for (let position = 0; position < 50_000; position += 10) {
    const found = arrivalOf(list, position);
    const trueMs = AT + position * 100;
    assert.ok(found && (found.fromMs ?? found.atMs) <= trueMs && found.atMs >= trueMs, `${position}`);
  }
  assert.equal(arrivalOf(list, 49_990)?.fromMs, undefined, "the newest is exact");
  assert.equal(thinArrivals(steady(3), 1).length, 1);
});
