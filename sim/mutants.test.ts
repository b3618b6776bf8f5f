import assert from "node:assert/strict";
import { availableParallelism } from "node:os";
import { describe, test } from "node:test";
import { MUTANTS } from "./mutants/mutants.ts";
import { runHistories } from "./run-histories.ts";

/** A change of the code can move the histories in which a mutant shows. The next ones are searched then. */
const MOST_SEEDS = 300;
/** A search that is longer costs more than the start of the process. */
const FEW = 5;

describe("faults put in on purpose", { concurrency: availableParallelism() }, () => {
  for (const [
    name,
    { caughtBy, clockBack, outages, rollouts, coordinators, from = 0, seeds = MOST_SEEDS },
  ] of Object.entries(MUTANTS)) {
    test(`the rules catch a coordinator of the kind ${name}`, async (t) => {
      const flags = [
        ...(clockBack ? ["--clock-back"] : []),
        ...(outages ? ["--outages"] : []),
        ...(rollouts ? ["--rollouts"] : []),
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
