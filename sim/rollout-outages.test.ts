import assert from "node:assert/strict";
import { test } from "node:test";
import { runHistories } from "./run-histories.ts";

// Plays each kind of outage 8 times. To repeat one seed: node sim/main.ts --rollouts --seed N --trace
const SEEDS = Number(process.env.FORAGE_SIM_SEEDS ?? 56);

test("an outage of the coordinator's process, disk or clock fails no rollout of a working version", async () => {
  const { broken, output } = await runHistories({ from: 0, count: SEEDS, arguments: ["--rollouts"] });
  assert.ok(!broken, output);
});
