import { parseArgs } from "node:util";
import { makeSecrets } from "./sim-coordinator.ts";
import { simulate } from "./simulate.ts";

const usage = `usage: node coordinator/test/sim/main.ts [--seed N [--trace]] [--seeds COUNT] [--from N]

  --seed N     one history; prints its last lines if a rule was broken
  --trace      all of its lines
  --seeds N    so many histories (default 100), from --from on (default 0)`;

async function main(): Promise<number> {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  const { values } = parseArgs({ options: { seed: text, seeds: text, from: text, trace: flag, help: flag } });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const from = Number(values.seed ?? values.from ?? 0);
  const count = values.seed === undefined ? Number(values.seeds ?? 100) : 1;
  const secrets = await makeSecrets();
  const startMs = performance.now();
  let broken = 0;
  let writes = 0;
  for (let seed = from; seed < from + count; seed++) {
    const outcome = await simulate({ seed, secrets, ...(values.trace && { echo: console.log }) });
    writes += outcome.writes;
    if (outcome.violation === undefined) continue;
    broken++;
    if (!values.trace) console.log(outcome.lastLines.join("\n"));
    console.log(`seed ${seed}: ${outcome.violation.message}\n`);
  }
  const ms = performance.now() - startMs;
  console.log(
    `${count} histories, ${broken} broke a rule; ${writes} writes, ${(ms / count).toFixed(0)} ms each`,
  );
  return broken === 0 ? 0 : 1;
}

process.exitCode = await main();
