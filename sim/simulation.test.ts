import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { runHistories } from "../coordinator/test/sim/run-histories.ts";
import { makeSecrets } from "../coordinator/test/sim/sim-coordinator.ts";
import { simulate } from "../coordinator/test/sim/simulate.ts";
import { RealNode } from "./real-node.ts";

// One seed can be played again: node sim/main.ts --seed N --trace
const SEEDS = Number(process.env.FORAGE_SIM_SEEDS ?? 60);
const OUTAGES = 44;
const PROGRAM = join(import.meta.dirname, "main.ts");

test("a fleet of real agents keeps its rules under faults and comes to rest after them", async () => {
  const { broken, output } = await runHistories({ from: 0, count: SEEDS, program: PROGRAM });
  assert.ok(!broken, output);
});

test("an outage of the coordinator or of one agent ends no container of a real agent", async () => {
  const { broken, output } = await runHistories({
    ...{ from: 0, count: OUTAGES, program: PROGRAM },
    arguments: ["--outages"],
  });
  assert.ok(!broken, output);
});

test("the same seed plays the same history of real agents", async () => {
  const secrets = await makeSecrets();
  for (const seed of [2, 7]) {
    const play = () => simulate({ seed, secrets, makeNode: (options) => new RealNode(options) });
    const { digest } = await play();
    assert.equal((await play()).digest, digest, `seed ${seed}`);
  }
});
