import assert from "node:assert/strict";
import { parseArgs } from "node:util";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { readConfig } from "../coordinator/src/config.ts";
import { aRequest } from "../coordinator/test/support/requests.ts";
import { CalmFleet } from "./calm-fleet.ts";
import { imageOf } from "./fleet/programs.ts";
import { clientContext } from "./fleet/sim-coordinator.ts";

const MINUTE_MS = 60_000;
const MEGABYTE = 1024 * 1024;
/** This is longer than the agents need to connect and the pods need to start. */
const START_LIMIT_MS = 5 * MINUTE_MS;

/**
 * `node sim/many-agents.ts [--agents 1000] [--pods 3000] [--minutes 10]` runs a coordinator and many real agents in one
 * process on virtual time. It prints the time that it takes to connect, to start the pods and to play the remaining
 * minutes.
 */
async function main(): Promise<void> {
  const number = (text: string): number => {
    const value = Number(text);
    if (!Number.isInteger(value) || value < 1) throw new RangeError(`${text} is no number above 0`);
    return value;
  };
  const { values } = parseArgs({
    options: {
      agents: { type: "string", default: "1000" },
      pods: { type: "string", default: "3000" },
      minutes: { type: "string", default: "10" },
    },
  });
  const [agents, pods, minutes] = [values.agents, values.pods, values.minutes].map(number) as [
    number,
    number,
    number,
  ];
  const fleet = await CalmFleet.start({ nodes: agents, config: readConfig(["--data-dir", "/none"], {}) });
  const beganMs = fleet.time.nowMs();
  const connected = await measured("agents connected", fleet, () =>
    until(fleet, () => fleet.coordinator.up && reported(fleet) === agents),
  );
  const started = await measured("pods running", fleet, async () => {
    const value = { scaling: { replicas: pods }, container: { name: "main", image: imageOf("good", 1) } };
    const resource = ForageResource.fromPartial({ name: "web", spec: { $case: "containerService", value } });
    const context = clientContext(fleet.coordinator.life);
    const applied = fleet.coordinator.forage.applyResources(aRequest("bench", [resource]), context);
    const running = () => fleet.nodes.reduce((sum, node) => sum + node.running, 0);
    await Promise.all([applied, until(fleet, () => running() === pods)]);
  });
  const restMs = minutes * MINUTE_MS - (fleet.time.nowMs() - beganMs);
  const rest = await measured("the rest", fleet, () => fleet.pass(Math.max(0, restMs)));
  console.table([connected, started, rest]);
  const { user, system } = process.cpuUsage();
  const result = {
    ...{ bench: "many-agents", node: process.version, agents, pods, minutes },
    processorSeconds: Math.round((user + system) / 1e6),
    residentMegabytes: Math.round(process.memoryUsage().rss / MEGABYTE),
  };
  console.log(JSON.stringify(result));
  fleet.end();
}

/** Returns the number of nodes whose report the coordinator has received. */
function reported({ coordinator }: CalmFleet): number {
  return coordinator.core.state.nodes().filter(({ report }) => report !== undefined).length;
}

async function measured(what: string, fleet: CalmFleet, run: () => Promise<void>) {
  const cpu = process.cpuUsage();
  const [startMs, virtualMs] = [performance.now(), fleet.time.nowMs()];
  await run();
  const { user, system } = process.cpuUsage(cpu);
  return {
    what,
    "virtual s": (fleet.time.nowMs() - virtualMs) / 1000,
    "processor s": Number(((user + system) / 1e6).toFixed(1)),
    s: Number(((performance.now() - startMs) / 1000).toFixed(1)),
  };
}

async function until(fleet: CalmFleet, isDone: () => boolean): Promise<void> {
  const limitMs = fleet.time.nowMs() + START_LIMIT_MS;
  while (!isDone()) {
    assert.ok(fleet.time.nowMs() < limitMs, `not done within ${START_LIMIT_MS / MINUTE_MS} virtual minutes`);
    await fleet.pass(100);
  }
}

await main();
