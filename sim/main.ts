import { parseArgs } from "node:util";
import { putInPlace } from "../coordinator/test/sim/mutants/mutants.ts";

const USAGE = `usage: node sim/main.ts [--seed N [--trace]] [--seeds COUNT] [--from N] [--stop] [--outages] [--mutant NAME]

Plays histories of a fleet: the real coordinator and the real agents on simulated hosts, network, disks and time.

  --seed N       one history; prints its last lines if a rule was broken
  --trace        prints all of its lines
  --seeds N      plays N histories (default 100), from --from on (default 0)
  --stop         plays none after the first that breaks a rule
  --outages      plays one outage of a fleet at rest in each history
  --mutant NAME  puts a fault in on purpose`;

async function main(): Promise<number> {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  const { values } = parseArgs({
    options: {
      ...{ seed: text, seeds: text, from: text, mutant: text },
      ...{ trace: flag, stop: flag, outages: flag, help: flag },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  if (values.mutant !== undefined) putInPlace(values.mutant);
  // Loaded only now, with the mutant in its place.
  const { makeSecrets } = await import("../coordinator/test/sim/sim-coordinator.ts");
  const { simulate } = await import("../coordinator/test/sim/simulate.ts");
  const { simulateOutage } = await import("../coordinator/test/sim/outage.ts");
  const { RealNode } = await import("./real-node.ts");
  const from = Number(values.seed ?? values.from ?? 0);
  const end = from + (values.seed === undefined ? Number(values.seeds ?? 100) : 1);
  const secrets = await makeSecrets();
  const sum = { histories: 0, broken: 0, writes: 0 };
  for (let seed = from; seed < end && !(values.stop && sum.broken > 0); seed++) {
    const play = values.outages ? simulateOutage : simulate;
    const outcome = await play({
      ...{ seed, secrets, makeNode: (options) => new RealNode(options) },
      ...(values.trace && { echo: console.log }),
    });
    sum.histories++;
    sum.writes += outcome.writes;
    if (outcome.violation === undefined) continue;
    sum.broken++;
    if (!values.trace) console.log(outcome.lastLines.join("\n"));
    console.log(`seed ${seed}: ${outcome.violation.message}\n`);
  }
  const eachMs = process.cpuUsage().user / 1000 / Math.max(1, sum.histories);
  console.log(
    `${sum.histories} histories, ${sum.broken} broke a rule; ${sum.writes} writes, ${eachMs.toFixed(0)} ms of processor time each`,
  );
  return sum.broken === 0 ? 0 : 1;
}

process.exitCode = await main();
