import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { isReissueDue, keepReissued } from "./reissue.ts";

const HOUR_MS = 3_600_000;
const ISSUED = { wallMs: 1_000 * HOUR_MS, monotonicMs: 0 };
const after = (ms: number, setByMs = 0) => ({ wallMs: ISSUED.wallMs + ms + setByMs, monotonicMs: ms });

test("issues a server certificate again after half of its lifetime", () => {
  assert.equal(isReissueDue(ISSUED, after(15 * 24 * HOUR_MS - 1)), false);
  assert.equal(isReissueDue(ISSUED, after(15 * 24 * HOUR_MS)), true);
});

test("issues a server certificate again after the wall clock was set in either direction", () => {
  assert.equal(isReissueDue(ISSUED, after(60_000, -HOUR_MS)), true);
  assert.equal(isReissueDue(ISSUED, after(60_000, HOUR_MS)), true);
  assert.equal(isReissueDue(ISSUED, after(60_000, 2_000)), false);
});

test("retries a failed issue of a server certificate until it succeeds", async () => {
  const clock = new VirtualClock();
  const loaded: number[] = [];
  let failures = 0;
  let isAway = true;
  const cancel = keepReissued({
    issue: async () => {
      if (isAway) throw new Error("the authority can't be read");
      return { chainPem: "", keyPem: "", clientCaPem: "" };
    },
    reload: () => void loaded.push(clock.monotonicMs()),
    clock,
    log: { error: () => void failures++ },
  });
  // The certificate is now not valid yet.
  clock.jumpWall(-HOUR_MS);
  await clock.run(10 * 60_000);
  assert.deepEqual([failures, loaded], [10, []]);
  isAway = false;
  await clock.run(HOUR_MS);
  assert.equal(loaded.length, 1);
  cancel();
  assert.equal(clock.pending, 0);
});
