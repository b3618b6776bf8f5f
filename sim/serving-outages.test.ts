import assert from "node:assert/strict";
import { test } from "node:test";
import { SERVING_MUTANTS } from "./mutants/agent-mutants.ts";
import { runHistories } from "./run-histories.ts";

// Plays each kind of fault twice, half of them with a second fault meanwhile. To repeat one seed: node sim/main.ts
// --serving --seed N --trace
const SEEDS = 20;
const HISTORIES = { from: 0, count: SEEDS };

test("routes, certificates and addresses of load balancers are served as desired after faults", async () => {
  const { broken, output } = await runHistories({ ...HISTORIES, arguments: ["--serving"] });
  assert.ok(!broken, output);
});

for (const [name, { caughtBy }] of Object.entries(SERVING_MUTANTS))
  test(`the rules detect a host with the fault ${name}`, async () => {
    const { broken, output } = await runHistories({
      ...HISTORIES,
      arguments: ["--serving", "--stop", "--mutant", name],
    });
    assert.ok(broken, `${SEEDS} histories, and no rule was broken`);
    assert.match(output, new RegExp(`^seed \\d+: .*(?:${caughtBy.source})`, "m"), output);
  });
