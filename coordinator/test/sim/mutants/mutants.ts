import { existsSync } from "node:fs";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** A coordinator with one fault put in on purpose. */
export interface Mutant {
  /** What is replaced, from the repository's root. */
  readonly module: string;
  /** What some rule must say of it. */
  readonly caughtBy: RegExp;
  /** The first history to play. Default: 0. One that needs several faults at once shows in few histories. */
  readonly from?: number;
  /** How many histories. Default: 300. */
  readonly seeds?: number;
  /** It shows in outages of a fleet at rest. */
  readonly outages?: true;
}

const control = "coordinator/src/control";

/** By the name of the file in this folder that takes the module's place. */
export const mutants: Readonly<Record<string, Mutant>> = {
  "too-much-surge": { module: `${control}/workload/plan.ts`, caughtBy: /active pods, at most/ },
  "stopping-pods-serve": { module: `${control}/workload/plan.ts`, caughtBy: /must stay|no rest/ },
  "lost-nodes-serve": {
    module: "coordinator/src/endpoints/readiness.ts",
    caughtBy: /must stay/,
    from: 56,
    seeds: 10,
  },
  "forgets-lost-pods": { module: `${control}/workload/plan.ts`, caughtBy: /record is gone/ },
  "never-evicts": { module: `${control}/eviction/eviction-of.ts`, caughtBy: /no rest/ },
  "moves-pods": { module: `${control}/pod-writes.ts`, caughtBy: /moved from/ },
  "keeps-for-ever": { module: `${control}/kept-pods/plan.ts`, caughtBy: /no rest.*is kept/ },
  "rollouts-go-on": { module: `${control}/rollout/progress.ts`, caughtBy: /no rest/ },
  "blind-placement": { module: "scheduler/src/index.ts", caughtBy: /its pods ask for/ },
  "careless-writes": { module: "coordinator/src/core.ts", caughtBy: /./ },
  "silence-is-gone": { module: "coordinator/src/link/reports.ts", caughtBy: /record is gone/ },
  "failures-complete": { module: `${control}/job/count.ts`, caughtBy: /have ended well/ },
  "too-many-at-a-time": { module: `${control}/job/plan.ts`, caughtBy: /at a time|were wanted|twice/ },
  "forbids-nothing": { module: "coordinator/src/model/cron-job.ts", caughtBy: /was started beside/ },
  "ignores-hold-ups": {
    module: "coordinator/src/link/stall-detector.ts",
    caughtBy: /held-up: endpoints .* were withdrawn/,
    outages: true,
  },
  "withdraws-in-mass-loss": {
    module: `${control}/eviction/mass-loss.ts`,
    caughtBy: /link.*: endpoints .* were withdrawn/,
    outages: true,
  },
  "evicts-while-nodes-return": {
    module: `${control}/eviction/mass-loss.ts`,
    caughtBy: /is to stop/,
    outages: true,
  },
  "tolerates-three-seconds": {
    module: "coordinator/src/link/node-limits.ts",
    caughtBy: /agent-down: pod .* is to stop/,
    outages: true,
  },
  "reads-behind-writes": {
    module: "coordinator/src/link/connect.ts",
    caughtBy: /disk-stall: (?:endpoints .* were withdrawn|pod .* is to stop)/,
    outages: true,
  },
  "waits-for-the-clock": {
    module: `${control}/job/back-off.ts`,
    caughtBy: /no rest .*: job/,
    from: 80,
    seeds: 10,
  },
  "faults-spread": {
    module: "coordinator/src/faults/object-faults.ts",
    caughtBy: /can't go on: .*invalid|a listener of the view failed|no rest/,
    seeds: 20,
  },
  "full-disk-succeeds": { module: "coordinator/src/core.ts", caughtBy: /is not known any more/, seeds: 20 },
  "stops-nothing": { module: "coordinator/src/link/assignments.ts", caughtBy: /no rest/ },
};

/** From now on the mutant is loaded in place of the module; to be called before that was loaded. */
export function putInPlace(name: string): void {
  const mutant = mutants[name];
  if (mutant === undefined)
    throw new Error(`there is no mutant "${name}": ${Object.keys(mutants).join(", ")}`);
  const root = join(import.meta.dirname, "../../../..");
  if (!existsSync(join(root, mutant.module)))
    throw new Error(`the mutant "${name}" replaces a module that does not exist: ${mutant.module}`);
  const original = pathToFileURL(join(root, mutant.module)).href;
  const replacement = pathToFileURL(join(import.meta.dirname, `${name}.ts`)).href;
  registerHooks({
    resolve(specifier, context, next) {
      const resolved = next(specifier, context);
      const replaced = resolved.url === original && context.parentURL !== replacement;
      return replaced ? { ...resolved, url: replacement } : resolved;
    },
  });
}
