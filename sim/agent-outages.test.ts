import assert from "node:assert/strict";
import { test } from "node:test";
import { AGENT_MUTANTS } from "./mutants/agent-mutants.ts";
import { runHistories } from "./run-histories.ts";

// Plays each kind of fault 7 times. To repeat one seed: node sim/main.ts --agents --seed N --trace
const SEEDS = 49;
const HISTORIES = { from: 0, count: SEEDS };

test("a full disk or a clock that is set ends no container of a real agent, and all others start", async () => {
  const { broken, output } = await runHistories({ ...HISTORIES, arguments: ["--agents"] });
  assert.ok(!broken, output);
});

for (const [name, { caughtBy }] of Object.entries(AGENT_MUTANTS))
  test(`the rules detect an agent with the fault ${name}`, async () => {
    const { broken, output } = await runHistories({
      ...HISTORIES,
      arguments: ["--agents", "--stop", "--mutant", name],
    });
    assert.ok(broken, `${SEEDS} histories, and no rule was broken`);
    assert.match(output, new RegExp(`^seed \\d+: .*(?:${caughtBy.source})`, "m"), output);
  });
