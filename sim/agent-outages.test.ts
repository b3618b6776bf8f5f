import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { runHistories } from "../coordinator/test/sim/run-histories.ts";
import { AGENT_MUTANTS } from "./agent-mutants.ts";

// Each kind of fault 8 times; one seed can be run again: node sim/main.ts --agents --seed N --trace
const SEEDS = 48;
const HISTORIES = { from: 0, count: SEEDS, program: join(import.meta.dirname, "main.ts") };

test("a full disk and a set clock leave all containers running that a real agent has, and start all others", async () => {
  const { broken, output } = await runHistories({ ...HISTORIES, arguments: ["--agents"] });
  assert.ok(!broken, output);
});

for (const [name, { caughtBy }] of Object.entries(AGENT_MUTANTS))
  test(`the rules catch an agent of the kind ${name}`, async () => {
    const { broken, output } = await runHistories({
      ...HISTORIES,
      arguments: ["--agents", "--stop", "--mutant", name],
    });
    assert.ok(broken, `${SEEDS} histories, and no rule was broken`);
    assert.match(output, new RegExp(`^seed \\d+: .*(?:${caughtBy.source})`, "m"), output);
  });
