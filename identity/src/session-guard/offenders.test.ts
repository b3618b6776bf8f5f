import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Offenders } from "./offenders.ts";

describe("Offenders", () => {
  it("lets connections of other addresses start at once", () => {
    const offenders = new Offenders();
    offenders.offend("192.0.2.1", 0);
    for (let i = 0; i < 100; i++) assert.equal(offenders.tryStart("192.0.2.2", 0), true);
  });

  it("starts eight connections a second for an address whose connection was closed", () => {
    const offenders = new Offenders();
    offenders.offend("192.0.2.1", 0);
    let started = 0;
    for (let nowMs = 0; nowMs < 10_000; nowMs++) if (offenders.tryStart("192.0.2.1", nowMs)) started += 1;
    assert.equal(started, 79);
  });

  it("keeps the rate if the address offends with each connection", () => {
    const offenders = new Offenders();
    let started = 0;
    for (let nowMs = 0; nowMs < 10_000; nowMs++) {
      if (!offenders.tryStart("192.0.2.1", nowMs)) continue;
      started += 1;
      offenders.offend("192.0.2.1", nowMs);
    }
    assert.equal(started, 80);
  });

  it("counts an IPv6 /64 as one address", () => {
    const offenders = new Offenders();
    offenders.offend("2001:db8:0:1::1", 0);
    assert.equal(offenders.tryStart("2001:db8:0:1:ffff::2", 0), false);
    assert.equal(offenders.tryStart("2001:db8:0:2::1", 0), true);
  });

  it("forgets an address one minute after its last offence", () => {
    const offenders = new Offenders();
    offenders.offend("192.0.2.1", 0);
    offenders.offend("192.0.2.1", 30_000);
    assert.equal(offenders.isPaced("192.0.2.1", 89_999), true);
    assert.equal(offenders.isPaced("192.0.2.1", 90_000), false);
    offenders.offend("192.0.2.9", 90_001);
    assert.equal(offenders.size, 1);
  });

  it("remembers a limited number of addresses", () => {
    const offenders = new Offenders();
    for (let i = 0; i < 20_000; i++) offenders.offend(`10.0.${i >> 8}.${i & 255}`, 0);
    assert.equal(offenders.size, 10_000);
  });
});
