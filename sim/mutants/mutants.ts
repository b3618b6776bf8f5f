import { existsSync } from "node:fs";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** A coordinator or an agent with one deliberate fault. */
export interface Mutant {
  /** The path of the replaced module, from the repository's root. */
  readonly module: string;
  /** Matches the message of a rule that must catch it. */
  readonly caughtBy: RegExp;
  /** The first history to play, one in which the mutant is caught, so a run needs no search. Default: 0. */
  readonly from?: number;
  /** The number of histories. Default: 300. */
  readonly seeds?: number;
  /** Set if the mutant is caught in outages of an idle fleet. */
  readonly outages?: true;
  /** Set if the mutant is caught in histories whose only fault is that the coordinator's clock is set back. */
  readonly clockBack?: true;
  /** Set if the mutant is caught in outages of the coordinator during a rollout. */
  readonly rollouts?: true;
  /** Set if the mutant is caught in renewals of certificates. */
  readonly renewals?: true;
  /** Set if the mutant is caught in histories of several coordinators. */
  readonly coordinators?: true;
}

const ROOT = join(import.meta.dirname, "../..");
const CONTROL = "coordinator/src/control";

/** All mutants by the name of the file in this folder that replaces the module. */
export const MUTANTS: Readonly<Record<string, Mutant>> = {
  "too-much-surge": { module: `${CONTROL}/workload/plan.ts`, caughtBy: /active pods, at most/ },
  "stopping-pods-serve": { module: `${CONTROL}/workload/plan.ts`, caughtBy: /must stay|no rest/, from: 8 },
  "lost-nodes-serve": {
    module: "coordinator/src/endpoints/readiness.ts",
    caughtBy: /must stay/,
    from: 99,
  },
  "forgets-lost-pods": {
    module: `${CONTROL}/workload/plan.ts`,
    caughtBy: /is gone without an order/,
    from: 2,
  },
  "never-evicts": { module: `${CONTROL}/eviction/eviction-of.ts`, caughtBy: /no rest/, from: 11 },
  "moves-pods": { module: `${CONTROL}/pod-writes.ts`, caughtBy: /moved from/ },
  "keeps-for-ever": { module: `${CONTROL}/kept-pods/plan.ts`, caughtBy: /no rest.*is kept/, from: 112 },
  "rollouts-go-on": { module: `${CONTROL}/rollout/progress.ts`, caughtBy: /no rest/ },
  "blind-placement": { module: "scheduler/src/index.ts", caughtBy: /its pods ask for/, from: 4 },
  "careless-writes": { module: "coordinator/src/core.ts", caughtBy: /./, from: 19 },
  "silence-is-gone": {
    module: "coordinator/src/link/reports.ts",
    caughtBy: /is gone without an order/,
    from: 5,
  },
  "failures-complete": { module: `${CONTROL}/job/count.ts`, caughtBy: /have ended well/ },
  "too-many-at-a-time": { module: `${CONTROL}/job/plan.ts`, caughtBy: /at a time|are desired|twice/ },
  "forbids-nothing": {
    module: "coordinator/src/model/cron-job.ts",
    caughtBy: /was started beside/,
    from: 37,
  },
  "ignores-stalls": {
    module: "coordinator/src/link/stall-detector.ts",
    caughtBy: /held-up: endpoints .* were withdrawn/,
    from: 158,
    outages: true,
  },
  "withdraws-in-mass-loss": {
    module: `${CONTROL}/eviction/mass-loss.ts`,
    caughtBy: /link.*: endpoints .* were withdrawn/,
    outages: true,
  },
  "evicts-while-nodes-return": {
    module: `${CONTROL}/eviction/mass-loss.ts`,
    caughtBy: /is to stop/,
    outages: true,
  },
  "tolerates-three-seconds": {
    module: "coordinator/src/link/node-limits.ts",
    caughtBy: /agent-down: pod .* is to stop/,
    from: 48,
    outages: true,
  },
  "reads-behind-writes": {
    module: "coordinator/src/link/connect.ts",
    caughtBy: /disk-stall: (?:endpoints .* were withdrawn|pod .* is to stop)/,
    from: 122,
    outages: true,
  },
  "taints-age-by-the-clock": {
    module: `${CONTROL}/eviction/taint-ages.ts`,
    caughtBy: /tainted-clock-\w+: pod .* (?:is to stop|stays)/,
    from: 11,
    outages: true,
  },
  "full-disk-ends-streams": {
    module: "coordinator/src/link/connect.ts",
    caughtBy: /disk-full: endpoints .* were withdrawn/,
    from: 6,
    outages: true,
  },
  "forgets-the-certificate-in-use": {
    module: "coordinator/src/link/enroll.ts",
    caughtBy: /certificate \d+ is refused/,
    renewals: true,
  },
  "reissues-once": {
    module: "coordinator/src/reissue.ts",
    caughtBy: /the port's certificate is valid from/,
    renewals: true,
  },
  "reissues-by-age": {
    module: "coordinator/src/reissue.ts",
    caughtBy: /the port's certificate is valid from/,
    from: 8,
    renewals: true,
  },
  "waits-for-the-clock": {
    module: `${CONTROL}/job/back-off.ts`,
    caughtBy: /no rest .*: job/,
    from: 7,
    clockBack: true,
  },
  "counts-stalls": {
    module: "coordinator/src/acting-time/acting-time.ts",
    caughtBy: /disk-(?:stall|full): a good version was not rolled out/,
    from: 7,
    rollouts: true,
    seeds: 56,
  },
  "counts-pauses": {
    module: "coordinator/src/acting-time/acting-time.ts",
    caughtBy: /held-up: a good version was not rolled out/,
    from: 2,
    rollouts: true,
    seeds: 56,
  },
  "counts-clock-steps": {
    module: "coordinator/src/acting-time/acting-time.ts",
    caughtBy: /a good version was not rolled out/,
    from: 2,
    rollouts: true,
    seeds: 56,
  },
  "faults-spread": {
    module: "coordinator/src/faults/object-faults.ts",
    caughtBy: /can't go on: .*invalid|a listener of the view failed|no rest/,
    from: 256,
    seeds: 20,
  },
  "full-disk-succeeds": { module: "coordinator/src/core.ts", caughtBy: /is not known any more/, seeds: 20 },
  "writes-again": { module: "coordinator/src/core.ts", caughtBy: /after all had come to rest/ },
  "stopping-jobs-take-no-room": { module: `${CONTROL}/job/pod-state.ts`, caughtBy: /its pods ask for/ },
  "stops-nothing": { module: "coordinator/src/link/assignments.ts", caughtBy: /no rest/ },
  "gives-up": { module: "agent/src/pods/decide/next-step.ts", caughtBy: /no rest/, from: 51 },
  "forgets-pods": {
    module: "agent/src/recorded-pods.ts",
    caughtBy: /after it was removed|no rest/,
    from: 2,
  },
  "writes-without-fence": {
    module: "coordinator/src/store/etcd/prefixed.ts",
    caughtBy: /is lost|have both written|was changed|found another history/,
    coordinators: true,
  },
  "leads-at-once": {
    module: "coordinator/src/store/etcd/leadership.ts",
    caughtBy: /though nothing had befallen it|lead at the same time/,
    coordinators: true,
  },
  "waits-for-nodes": {
    module: "coordinator/src/link/start-gate.ts",
    caughtBy: /no coordinator has decided/,
    coordinators: true,
  },
  "leads-before-it-has-read": {
    module: "coordinator/src/store/etcd/log-reader.ts",
    caughtBy: /is lost|have both written|was changed/,
    coordinators: true,
  },
  "hides-removals": { module: "agent/src/link/status-outbox.ts", caughtBy: /no rest/ },
};

/** Loads the mutant in place of its module from now on. Must be called before the module is loaded. */
export function putInPlace(name: string): void {
  const mutant = MUTANTS[name];
  if (mutant === undefined)
    throw new Error(`there is no mutant "${name}": ${Object.keys(MUTANTS).join(", ")}`);
  replaceModule(mutant.module, join(import.meta.dirname, `${name}.ts`));
}

/**
 * Loads the file in place of the module, whose path is from the repository's root. Must be called before the module is
 * loaded.
 */
export function replaceModule(module: string, file: string): void {
  if (!existsSync(join(ROOT, module)))
    throw new Error(`${file} replaces a module that does not exist: ${module}`);
  const original = pathToFileURL(join(ROOT, module)).href;
  const replacement = pathToFileURL(file).href;
  registerHooks({
    resolve(specifier, context, next) {
      const resolved = next(specifier, context);
      const replaced = resolved.url === original && context.parentURL !== replacement;
      return replaced ? { ...resolved, url: replacement } : resolved;
    },
  });
}
