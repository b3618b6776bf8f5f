import { availableParallelism, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { Lab } from "../../hack/lab-hosts/lab.ts";
import { planHosts } from "../../hack/lab-hosts/lab-plan.ts";
import { claimLab } from "../../hack/system/claim-lab.ts";
import { LabFleet } from "../../hack/system/lab-fleet.ts";
import { startForage } from "./forage-fleet.ts";
import { CUT_OFF_RESTART_LIMIT_MS, type FaultFigures, measureFaults } from "./measure-faults.ts";
import { HOSTS, type MeasuredFleet } from "./measured-fleet.ts";
import { startSwarm } from "./swarm-fleet.ts";

const KIND = "nspawn";
const MAX_ROUNDS = 100;
const ROWS: readonly (readonly [string, keyof FaultFigures])[] = [
  ["a container's process is killed: all run again, s", "killed"],
  ["a host loses power: all run on the others, s", "hostLost"],
  ["a host is cut off: all run on the others, s", "cutOff"],
  ["  share of its containers that run on", "ranOn"],
  ["  one of its containers is killed: restarted there, s", "killedWhileCutOff"],
  ["  healed: the surplus has stopped, s", "healed"],
  ["a host's daemon is killed: share that survives", "survived"],
];

/**
 * Causes the same faults in Forage and in Docker Swarm on booted hosts, and measures both: `faults [--rounds N]`. Needs
 * root.
 */
export async function main(): Promise<void> {
  const { values } = parseArgs({ options: { rounds: { type: "string", default: "3" } } });
  const rounds = Number(values.rounds);
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > MAX_ROUNDS)
    throw new RangeError(`--rounds ${values.rounds} is not valid: give a number from 1 to ${MAX_ROUNDS}`);
  const figures: Record<string, FaultFigures> = {};
  const forage = await LabFleet.boot(KIND);
  try {
    const fleet = await startForage(forage);
    figures.forage = await medians(fleet, rounds);
    await forage.replacingSoon(async () => {
      figures["forage, 3 s"] = await medians(fleet, rounds);
    });
  } finally {
    await forage.close();
  }
  const { name, release } = await claimLab();
  try {
    const lab = await Lab.create(name, KIND, planHosts({ count: HOSTS, coordinatorOwnHost: true }));
    figures.swarm = await medians(await startSwarm(lab), rounds);
  } finally {
    await release();
  }
  const systems = Object.entries(figures);
  console.log("".padEnd(56), ...systems.map(([system]) => system.padStart(12)));
  for (const [title, key] of ROWS)
    console.log(title.padEnd(56), ...systems.map(([, values]) => shown(values[key]).padStart(12)));
  // JSON has no Infinity: it becomes null.
  const machine = { processors: availableParallelism(), load: loadavg()[2] };
  console.log(JSON.stringify({ bench: "faults", rounds, ...machine, figures }));
}

function shown(figure: number): string {
  return Number.isFinite(figure) ? figure.toFixed(1) : `> ${CUT_OFF_RESTART_LIMIT_MS / 1000}`;
}

async function medians(fleet: MeasuredFleet, rounds: number): Promise<FaultFigures> {
  const all: FaultFigures[] = [];
  for (let round = 0; round < rounds; round++) all.push(await measureFaults(fleet));
  const median = (key: keyof FaultFigures): number =>
    all.map((figures) => figures[key]).sort((a, b) => a - b)[Math.trunc(all.length / 2)] ?? Number.NaN;
  return {
    killed: median("killed"),
    hostLost: median("hostLost"),
    cutOff: median("cutOff"),
    ranOn: median("ranOn"),
    killedWhileCutOff: median("killedWhileCutOff"),
    healed: median("healed"),
    survived: median("survived"),
  };
}
