import { parseArgs } from "node:util";
import type { Supposition } from "@forage/proto/forage/operator/v1/operator";
import { openFleet } from "./open-fleet.ts";

const ZONES = 3;

/** Measures trials of changes on a fleet in memory: `what-if [--nodes N] [--services N] [--replicas N] [--runs N]`. */
export async function main(): Promise<void> {
  const text = (value: string) => ({ type: "string", default: value }) as const;
  const { values } = parseArgs({
    options: { nodes: text("1000"), services: text("100"), replicas: text("100"), runs: text("3") },
  });
  const sizes = {
    nodes: Number(values.nodes),
    services: Number(values.services),
    replicas: Number(values.replicas),
    zones: ZONES,
  };
  const runs = Number(values.runs);
  const fleet = await openFleet(sizes);
  const rows: Record<string, { readonly ms: number; readonly cpuMs: number }> = {};
  try {
    for (const [name, supposition] of trials()) {
      const measure = (): Promise<unknown> =>
        fleet.trials.whatIf({ suppositions: [{ supposition }] }, "bench");
      rows[name] = await median(runs, measure);
    }
    const shape = { $case: "requests", value: { amounts: { cpu: "250m", memory: "128Mi" } } } as const;
    rows.capacity = await median(runs, () => fleet.trials.capacity({ shape }, "bench"));
  } finally {
    await fleet.close();
  }
  console.log(`${"trial".padEnd(20)}${"ms".padStart(10)}${"CPU ms".padStart(10)}`);
  for (const [name, { ms, cpuMs }] of Object.entries(rows))
    console.log(`${name.padEnd(20)}${ms.toFixed(0).padStart(10)}${cpuMs.toFixed(0).padStart(10)}`);
  console.log(JSON.stringify({ bench: "what-if", ...sizes, runs, trials: rows }));
}

function trials(): readonly (readonly [string, NonNullable<Supposition["supposition"]>])[] {
  return [
    ["lose a node", { $case: "loseNode", value: "n7" }],
    ["lose a zone", { $case: "loseNodes", value: { key: "zone", value: "z1" } }],
    ["lose any node", { $case: "loseAnyNode", value: true }],
    ["add 10 nodes", { $case: "addNodes", value: { count: 10, like: "n7" } }],
    ["drain a node", { $case: "drainNode", value: "n7" }],
    ["scale 100 to 150", { $case: "scale", value: { namespace: "bench", name: "web-0", replicas: 150 } }],
  ];
}

/** Runs the function several times, and returns the medians of time and of this process's CPU time. */
async function median(runs: number, run: () => Promise<unknown>) {
  const found: { ms: number; cpuMs: number }[] = [];
  for (let i = 0; i < runs; i++) {
    const [startMs, before] = [performance.now(), process.cpuUsage()];
    await run();
    const { user, system } = process.cpuUsage(before);
    found.push({ ms: performance.now() - startMs, cpuMs: (user + system) / 1000 });
  }
  const middle = (of: "ms" | "cpuMs"): number =>
    found.map((one) => one[of]).sort((a, b) => a - b)[Math.floor(runs / 2)] ?? Number.NaN;
  return { ms: middle("ms"), cpuMs: middle("cpuMs") };
}
