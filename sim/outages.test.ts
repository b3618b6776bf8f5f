import assert from "node:assert/strict";
import { test } from "node:test";
import { runHistories } from "./run-histories.ts";

// Plays each kind of outage 18 times. To repeat one seed: node sim/main.ts --outages --seed N --trace
const SEEDS = Number(process.env.FORAGE_SIM_SEEDS ?? 234);

test("an outage of the coordinator's link, process, disk or clock, or of one agent, ends no container", async () => {
  const { broken, output } = await runHistories({ from: 0, count: SEEDS, arguments: ["--outages"] });
  assert.ok(!broken, output);
});
