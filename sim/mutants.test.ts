import assert from "node:assert/strict";
import { availableParallelism } from "node:os";
import { describe, test } from "node:test";
import { MUTANTS } from "./mutants/mutants.ts";
import { runHistories } from "./run-histories.ts";

/**
 * The number of histories to play. A change of the code can move the histories in which a mutant is caught, so later
 * ones are played, too.
 */
const MOST_SEEDS = 300;
/** The distance from the first seed at which the search takes longer than the start of a process. */
const FEW = 5;

describe("deliberate faults", { concurrency: availableParallelism() }, () => {
  for (const [
    name,
    { caughtBy, clockBack, outages, rollouts, renewals, coordinators, from = 0, seeds = MOST_SEEDS },
  ] of Object.entries(MUTANTS)) {
    test(`the rules detect a coordinator with the fault ${name}`, async (t) => {
      const flags = [
        ...(clockBack ? ["--clock-back"] : []),
        ...(outages ? ["--outages"] : []),
        ...(rollouts ? ["--rollouts"] : []),
        ...(renewals ? ["--renewals"] : []),
        ...(coordinators ? ["--coordinators"] : []),
      ];
      const { broken, output } = await runHistories({
        from,
        count: seeds,
        processes: 1,
        arguments: ["--mutant", name, "--stop", ...flags],
      });
      assert.ok(broken, `${seeds} histories, and no rule was broken`);
      const [, seed] = new RegExp(`^seed (\\d+): .*(?:${caughtBy.source})`, "m").exec(output) ?? [];
      assert.ok(seed !== undefined, output);
      if (Number(seed) > from + FEW)
        t.diagnostic(`${name} shows in history ${seed} first: set its \`from\` to ${seed}`);
    });
  }
});
