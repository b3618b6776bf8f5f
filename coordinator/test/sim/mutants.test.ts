import assert from "node:assert/strict";
import { test } from "node:test";
import { mutants } from "./mutants/mutants.ts";
import { runHistories } from "./run-histories.ts";

/** Most break a rule within the first few. */
const mostSeeds = 300;

for (const [name, { caughtBy, outages, from = 0, seeds = mostSeeds }] of Object.entries(mutants)) {
  test(`the rules catch a coordinator of the kind ${name}`, async () => {
    const { broken, output } = await runHistories({
      from,
      count: seeds,
      arguments: ["--mutant", name, "--stop", ...(outages ? ["--outages"] : [])],
    });
    assert.ok(broken, `${seeds} histories, and no rule was broken`);
    assert.match(output, new RegExp(`^seed \\d+: .*(?:${caughtBy.source})`, "m"), output);
  });
}
