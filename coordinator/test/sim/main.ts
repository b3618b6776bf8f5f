import { parseArgs } from "node:util";
import type { Fate } from "./life-store.ts";
import { putInPlace } from "./mutants/mutants.ts";

const usage = `usage: node coordinator/test/sim/main.ts [--seed N [--trace]] [--seeds COUNT] [--from N] [--stop]
       [--crash-every N] [--mutant NAME] [--outages]

  --seed N       one history; prints its last lines if a rule was broken
  --trace        all of its lines
  --seeds N      so many histories (default 100), from --from on (default 0)
  --stop         none after the first that breaks a rule
  --crash-every N  no other faults, but the coordinator dies at every Nth write: just before or just after, from the (seed mod N)th on
  --outages      one outage of a fleet at rest each, in place of histories
  --mutant NAME  with a fault put in on purpose: a file in mutants/`;

async function main(): Promise<number> {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  const { values } = parseArgs({
    options: {
      seed: text,
      seeds: text,
      from: text,
      mutant: text,
      "crash-every": text,
      trace: flag,
      stop: flag,
      outages: flag,
      help: flag,
    },
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  if (values.mutant !== undefined) putInPlace(values.mutant);
  // Loaded only now, with the mutant in its place.
  const { makeSecrets } = await import("./sim-coordinator.ts");
  const { simulate } = await import("./simulate.ts");
  const { simulateOutage } = await import("./outage.ts");
  const from = Number(values.seed ?? values.from ?? 0);
  const end = from + (values.seed === undefined ? Number(values.seeds ?? 100) : 1);
  const secrets = await makeSecrets();
  const every = values["crash-every"];
  const sum = { histories: 0, broken: 0, writes: 0 };
  for (let seed = from; seed < end && !(values.stop && sum.broken > 0); seed++) {
    const fateOf = every === undefined ? undefined : crashEvery(Number(every), seed);
    const history = { seed, secrets, ...(values.trace && { echo: console.log }) };
    const outcome = await (values.outages
      ? simulateOutage(history)
      : simulate({ ...history, ...(fateOf && { fateOf }) }));
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

/** Histories of seeds from 0 to twice the stride hit every write, before and after. */
function crashEvery(stride: number, seed: number): (write: number) => Fate {
  const fate = Math.floor(seed / stride) % 2 === 0 ? "die-before" : "die-after";
  return (write) => (write % stride === seed % stride ? fate : "done");
}

process.exitCode = await main();
