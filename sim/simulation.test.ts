import assert from "node:assert/strict";
import { test } from "node:test";
import { runHistories } from "../coordinator/test/sim/run-histories.ts";
import { makeSecrets } from "../coordinator/test/sim/sim-coordinator.ts";
import { simulate } from "../coordinator/test/sim/simulate.ts";
import { RealNode } from "./real-node.ts";

// A seed that fails is printed and can be played again: node sim/main.ts --seed N --trace
const SEEDS = Number(process.env.FORAGE_SIM_SEEDS ?? 400);

test("a fleet keeps its rules under faults and comes to rest after them", async () => {
  const { broken, output } = await runHistories({ from: 0, count: SEEDS });
  assert.ok(!broken, output);
});

test("the same seed plays the same history, and others play others", async () => {
  const secrets = await makeSecrets();
  const digests = new Set<string>();
  for (const seed of [2, 3, 7]) {
    const play = () => simulate({ seed, secrets, makeNode: (options) => new RealNode(options) });
    const { digest } = await play();
    assert.equal((await play()).digest, digest, `seed ${seed}`);
    digests.add(digest);
  }
  assert.equal(digests.size, 3);
});
