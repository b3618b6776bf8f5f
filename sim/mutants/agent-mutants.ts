import { join } from "node:path";
import { MUTANTS, putInPlace, replaceModule } from "./mutants.ts";

/** An agent with one deliberate fault, which is caught in the first histories with faults of all hosts. */
interface AgentMutant {
  readonly module: string;
  /** Matches the message of a rule that must catch it. */
  readonly caughtBy: RegExp;
}

/** The mutants by the name of the file in this folder that replaces the module. */
export const AGENT_MUTANTS: Readonly<Record<string, AgentMutant>> = {
  "images-wait-for-the-clock": {
    module: "agent/src/pods/image-store.ts",
    caughtBy: /clock-in-image-back-off: no rest/,
  },
  "pods-wait-for-the-clock": { module: "agent/src/pods/pod-loop.ts", caughtBy: /no rest/ },
  "full-disk-acknowledged": { module: "agent/src/journal/journal.ts", caughtBy: /full-at-.*: / },
  "outcomes-not-durable": {
    module: "agent/src/state-saver.ts",
    caughtBy: /runs again on .* after its outcome was reported/,
  },
  "removals-not-durable": {
    module: "agent/src/state-saver.ts",
    caughtBy: /started on .* after it was removed/,
  },
  "unsaved-states-stay-unsaved": { module: "agent/src/state-saver.ts", caughtBy: /full-at-.*: / },
};

/**
 * Mutants of the parts that serve routes and load balancers. They are caught in histories with faults of these parts.
 */
export const SERVING_MUTANTS: Readonly<Record<string, AgentMutant>> = {
  "endpoints-stay": {
    module: "agent/src/services/known-services.ts",
    caughtBy: /leads web\.example\.org to \[/,
  },
  "renews-at-the-end": { module: "identity/src/renewal.ts", caughtBy: /certificate that has ended/ },
  "addresses-are-not-yielded": {
    module: "agent/src/load-balancer/plan-addresses.ts",
    caughtBy: /holder-cut-off: .* hold 192/,
  },
};

const ALL: Readonly<Record<string, AgentMutant>> = { ...AGENT_MUTANTS, ...SERVING_MUTANTS };

/** @throws Error that lists the mutants if there is none with this name. */
export function requireMutant(name: string): void {
  const all = { ...MUTANTS, ...ALL };
  if (!(name in all)) throw new Error(`there is no mutant "${name}": ${Object.keys(all).join(", ")}`);
}

/** Loads the mutant of a coordinator or an agent in place of its module. Must be called before the module is loaded. */
export function putAnyInPlace(name: string): void {
  requireMutant(name);
  const mutant = ALL[name];
  if (mutant !== undefined) replaceModule(mutant.module, join(import.meta.dirname, `${name}.ts`));
  else putInPlace(name);
}
