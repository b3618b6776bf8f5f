import assert from "node:assert/strict";
import { test } from "node:test";
import { simulateCluster } from "./cluster/simulate-cluster.ts";
import { makeSecrets } from "./fleet/sim-coordinator.ts";
import { RealNode } from "./real-node.ts";
import { runHistories } from "./run-histories.ts";

// A seed that fails is printed. To repeat it: node sim/main.ts --coordinators --seed N --trace
const SEEDS = Number(process.env.FORAGE_SIM_SEEDS ?? 30);

test("several coordinators that share a store keep its rules while they are killed, paused and cut off", async () => {
  const { broken, output } = await runHistories({ from: 0, count: SEEDS, arguments: ["--coordinators"] });
  assert.ok(!broken, output);
});

test("the same seed plays the same history of several coordinators", async () => {
  const secrets = await makeSecrets();
  const play = () => simulateCluster({ seed: 4, secrets, makeNode: (options) => new RealNode(options) });
  const { digest } = await play();
  assert.equal((await play()).digest, digest);
});
