import assert from "node:assert/strict";
import { test } from "node:test";
import { runHistories } from "./run-histories.ts";

const STRIDE = 20;
/** Each place twice, in different histories. */
const SEEDS = 4 * STRIDE;

test("a coordinator that dies at any write, before or after it, leaves nothing that the next one can't go on with", async () => {
  const { broken, output } = await runHistories({
    from: 0,
    count: SEEDS,
    arguments: ["--crash-every", `${STRIDE}`],
  });
  assert.ok(!broken, output);
});
