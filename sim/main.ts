import { parseArgs } from "node:util";
import type { NodeOptions } from "./fleet/fleet-node.ts";
import type { Fate } from "./fleet/life-store.ts";
import { putAnyInPlace } from "./mutants/agent-mutants.ts";

const USAGE = `usage: node sim/main.ts [--seed N [--trace]] [--seeds COUNT] [--from N] [--stop]
       [--cpu-seconds N] [--seconds N]
       [--crash-every N | --clock-back] [--outages | --rollouts | --agents | --serving | --renewals | --coordinators]
       [--mutant NAME]

Plays histories of a fleet: the real coordinator and the real agents on simulated hosts, network, disks and time.

  --seed N       one history; prints its last lines if a rule was broken
  --trace        prints all of its lines
  --seeds N      plays N histories (default 100), from --from on (default 0)
  --cpu-seconds N  begins no history after so many seconds of processor time, except the first
  --seconds N    begins no history after so many seconds, except the first
  --stop         plays none after the first that breaks a rule
  --crash-every N  no other faults, but the coordinator dies at every Nth write: just before or just after it, from
                 the (seed mod N)th write on
  --clock-back   no other faults, but the coordinator's wall clock is set back by a day, again and again
  --outages      plays one outage of a fleet at rest in each history
  --rollouts     plays one outage of the coordinator during a rollout in each history
  --agents       plays one fault of all hosts while agents wait or write in each history
  --serving      plays one fault or two of what serves routes and load balancers in each history
  --renewals     plays renewals of a node's certificate and the port's, which fail in each history
  --coordinators  plays several coordinators over one store in etcd, which are killed, held up and cut off
  --mutant NAME  puts a fault in on purpose`;

async function main(): Promise<number> {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  const { values } = parseArgs({
    options: {
      ...{ seed: text, seeds: text, from: text, seconds: text, mutant: text },
      ...{ "cpu-seconds": text, "crash-every": text },
      ...{
        trace: flag,
        stop: flag,
        "clock-back": flag,
        outages: flag,
        rollouts: flag,
        agents: flag,
        serving: flag,
        renewals: flag,
        coordinators: flag,
        help: flag,
      },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  if (values.mutant !== undefined) putAnyInPlace(values.mutant);
  // The module is loaded only now, after the mutant was put in its place.
  const { makeSecrets } = await import("./fleet/sim-coordinator.ts");
  const { simulate } = await import("./fleet/simulate.ts");
  const { simulateOutage } = await import("./fleet/outage.ts");
  const { simulateRolloutOutage } = await import("./fleet/rollout-outage.ts");
  const { simulateCluster } = await import("./cluster/simulate-cluster.ts");
  const { simulateAgentOutage } = await import("./agent-outage.ts");
  const { simulateServingOutage } = await import("./serving-outage.ts");
  const { simulateRenewals } = await import("./renewals.ts");
  const { RealNode } = await import("./real-node.ts");
  const from = Number(values.seed ?? values.from ?? 0);
  const end = from + (values.seed === undefined ? Number(values.seeds ?? 100) : 1);
  const secrets = await makeSecrets();
  const makeNode = (options: NodeOptions) => new RealNode(options);
  const every = values["crash-every"];
  const sum = { histories: 0, broken: 0, writes: 0 };
  const isOver = budgetOf({ cpuSeconds: values["cpu-seconds"], seconds: values.seconds });
  for (let seed = from; seed < end && !(values.stop && sum.broken > 0); seed++) {
    if (sum.histories > 0 && isOver()) break;
    const fateOf = every === undefined ? undefined : crashEvery(Number(every), seed);
    const history = { seed, secrets, makeNode, ...(values.trace && { echo: console.log }) };
    const outcome = values.coordinators
      ? await simulateCluster(history)
      : values.agents
        ? await simulateAgentOutage(history)
        : values.serving
          ? await simulateServingOutage(history)
          : values.renewals
            ? await simulateRenewals(history)
            : values.rollouts
              ? await simulateRolloutOutage(history)
              : values.outages
                ? await simulateOutage(history)
                : await simulate({
                    ...history,
                    ...(fateOf && { fateOf }),
                    setsClockBack: values["clock-back"] ?? false,
                  });
    sum.histories++;
    sum.writes += outcome.writes;
    if (outcome.violation === undefined) continue;
    sum.broken++;
    if (!values.trace) console.log(outcome.lastLines.join("\n"));
    console.log(`seed ${seed}: ${outcome.violation.message}\n`);
  }
  const { user, system } = process.cpuUsage();
  const eachMs = (user + system) / 1_000 / Math.max(1, sum.histories);
  console.log(
    `${sum.histories} histories from ${from} on, ${sum.broken} broke a rule; ${sum.writes} writes, ${eachMs.toFixed(0)} ms of processor time each`,
  );
  return sum.broken === 0 ? 0 : 1;
}

/** The limits of a run, as numbers in a text. No limit if undefined. */
interface Limits {
  readonly cpuSeconds: string | undefined;
  readonly seconds: string | undefined;
}

/** Returns a function that reports whether this process has reached a limit since now. */
function budgetOf({ cpuSeconds = "Infinity", seconds = "Infinity" }: Limits): () => boolean {
  const startedMs = performance.now();
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    if ((user + system) / 1e6 >= Number(cpuSeconds)) return true;
    return performance.now() - startedMs >= 1_000 * Number(seconds);
  };
}

/**
 * Returns a function by which the histories of seeds from 0 to twice the stride crash at every write, before and after
 * it.
 */
function crashEvery(stride: number, seed: number): (write: number) => Fate {
  const fate = Math.floor(seed / stride) % 2 === 0 ? "die-before" : "die-after";
  return (write) => (write % stride === seed % stride ? fate : "done");
}

process.exitCode = await main();
