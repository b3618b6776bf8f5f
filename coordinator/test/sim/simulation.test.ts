import assert from "node:assert/strict";
import { test } from "node:test";
import { runHistories } from "./run-histories.ts";

// Seeds are cheap; a failing one is printed and can be run again: node coordinator/test/sim/main.ts --seed N --trace
const seeds = Number(process.env.FORAGE_SIM_SEEDS ?? 800);

test("whatever fails, a fleet keeps its rules, and comes to rest once nothing fails any more", async () => {
  const { broken, output } = await runHistories({ from: 0, count: seeds });
  assert.ok(!broken, output);
});
