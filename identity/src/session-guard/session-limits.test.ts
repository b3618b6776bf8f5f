import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SessionLimits } from "./session-limits.ts";

const MEBIBYTE = 1024 * 1024;

describe("SessionLimits", () => {
  it("does not accept further PING frames because of answers to earlier ones", () => {
    const limits = new SessionLimits(0);
    let bytesWritten = 0;
    let pings = 0;
    while (limits.ping(0, { bytesRead: 0, bytesWritten })) {
      bytesWritten += 17;
      pings += 1;
      assert.ok(pings <= 1_000);
    }
    assert.equal(pings, 100);
  });

  it("does not accept a PING because of answers to SETTINGS frames", () => {
    const limits = new SessionLimits(0);
    let bytesWritten = 0;
    let pings = 0;
    while (limits.ping(0, { bytesRead: 0, bytesWritten })) {
      limits.settings(0);
      limits.settings(0);
      bytesWritten += 17 + 2 * 9;
      pings += 1;
      assert.ok(pings <= 1_000);
    }
    assert.equal(pings, 100);
  });

  it("allows received bytes in proportion to written ones", () => {
    const limits = new SessionLimits(0);
    for (let i = 1; i <= 100; i++)
      assert.equal(limits.overhead(0, { bytesRead: i * MEBIBYTE, bytesWritten: i * MEBIBYTE }), true);
    assert.equal(limits.overhead(0, { bytesRead: 101 * MEBIBYTE, bytesWritten: 100 * MEBIBYTE }), false);
  });

  it("does not save up the allowance of an upload for a later flood", () => {
    const limits = new SessionLimits(0);
    limits.dataReceived(100 * MEBIBYTE);
    assert.equal(limits.overhead(0, { bytesRead: 101 * MEBIBYTE, bytesWritten: 0 }), true);
    assert.equal(limits.overhead(0, { bytesRead: 102 * MEBIBYTE, bytesWritten: 0 }), false);
  });

  it("allows another 16 KiB of overhead each second", () => {
    const limits = new SessionLimits(0);
    for (let second = 1; second <= 1_000; second++)
      assert.equal(limits.overhead(second * 1_000, { bytesRead: second * 16 * 1024, bytesWritten: 0 }), true);
  });
});
