import assert from "node:assert/strict";
import { test } from "node:test";
import { simulateRenewals } from "./renewals.ts";

// To repeat one seed: node sim/main.ts --renewals --seed N --trace
const SEEDS = 30;

test("no failed renewal costs a node its membership, or the port a valid certificate", async () => {
  for (let seed = 0; seed < SEEDS; seed++) {
    const { violation, lastLines, writes } = await simulateRenewals({ seed });
    assert.equal(violation, undefined, `seed ${seed}: ${violation?.message}\n${lastLines.join("\n")}`);
    assert.ok(writes > 0);
  }
});
