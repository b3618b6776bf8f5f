import assert from "node:assert/strict";
import { test } from "node:test";
import { runHistories } from "./run-histories.ts";

const STRIDE = 20;
/** Each write is hit twice, in different histories. */
const SEEDS = 4 * STRIDE;

test("a coordinator that dies before or after any write leaves a state from which the next one can continue", async () => {
  const { broken, output } = await runHistories({
    from: 0,
    count: SEEDS,
    arguments: ["--crash-every", `${STRIDE}`],
  });
  assert.ok(!broken, output);
});
