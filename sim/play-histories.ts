import { simulateAgentOutage } from "./agent-outage.ts";
import { simulateCluster } from "./cluster/simulate-cluster.ts";
import type { NodeOptions } from "./fleet/fleet-node.ts";
import type { Fate } from "./fleet/life-store.ts";
import { simulateOutage } from "./fleet/outage.ts";
import { simulateRolloutOutage } from "./fleet/rollout-outage.ts";
import { makeSecrets } from "./fleet/sim-coordinator.ts";
import { simulate } from "./fleet/simulate.ts";
import type { HistoryFlags } from "./history-flags.ts";
import { RealNode } from "./real-node.ts";
import { simulateRenewals } from "./renewals.ts";
import { simulateServingOutage } from "./serving-outage.ts";

/** Plays the histories that the flags describe, and prints those that break a rule. Returns the exit code. */
export async function playHistories(values: HistoryFlags): Promise<number> {
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
