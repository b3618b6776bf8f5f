import assert from "node:assert/strict";
import { test } from "node:test";
import { HOSTNAME_BACK_OFF, ISSUER_BACK_OFF, waitMs } from "./back-off.ts";

const minutes = (ms: number): number => ms / 60_000;

test("doubles the delay up to the limit", () => {
  const waits = [1, 2, 3, 4, 5, 10, 20, 10_000].map((failures) =>
    minutes(waitMs(HOSTNAME_BACK_OFF, failures, 0)),
  );
  assert.deepEqual(waits, [2, 4, 8, 16, 32, 720, 720, 720]);
});

test("allows at most five attempts for a hostname in its first hour", () => {
  let atMs = 0;
  let attempts = 1;
  while (atMs < 3_600_000) {
    atMs += waitMs(HOSTNAME_BACK_OFF, attempts, 0);
    if (atMs < 3_600_000) attempts++;
  }
  assert.equal(attempts, 5);
});

test("lengthens delays randomly by at most a quarter", () => {
  for (const failures of [1, 3, 50]) {
    const bare = waitMs(ISSUER_BACK_OFF, failures, 0);
    assert.ok(waitMs(ISSUER_BACK_OFF, failures, 0.999) > bare);
    assert.ok(waitMs(ISSUER_BACK_OFF, failures, 0.999) < bare * 1.25);
  }
});

test("never waits less than the authority requested", () => {
  assert.equal(waitMs(HOSTNAME_BACK_OFF, 1, 0, 3_600_000), 3_600_000);
  assert.equal(waitMs(HOSTNAME_BACK_OFF, 10, 0, 1_000), 12 * 3_600_000);
});
