import { randomOf } from "@forage/common/random";
import { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { assertConverged, whatIsOpen } from "../fleet/convergence.ts";
import type { FleetNode, NodeOptions } from "../fleet/fleet-node.ts";
import { operate, putRight } from "../fleet/operate.ts";
import { type Outcome, outcomeOf } from "../fleet/outcome.ts";
import { imageOf } from "../fleet/programs.ts";
import { NAMESPACE, Script } from "../fleet/script.ts";
import type { Secrets } from "../fleet/sim-coordinator.ts";
import { simTime } from "../fleet/sim-time.ts";
import { Trace } from "../fleet/trace.ts";
import { Violation } from "../fleet/violation.ts";
import { ClusterWorld } from "./cluster-world.ts";
import { disturbCluster } from "./disturb-cluster.ts";

const ROUNDS = 12;
const REST_MS = 20 * 60_000;
const LOOK_MS = 1_000;
const AFTERWARDS_MS = 60_000;
const HOUR_MS = 3_600_000;

/**
 * Plays two or three coordinators that share one store and are killed, paused and cut off. In every other history
 * operators make changes meanwhile; in the others the fleet is idle, and no container may end. The seed alone
 * determines the history.
 */
export async function simulateCluster(options: {
  readonly seed: number;
  readonly secrets: Secrets;
  readonly echo?: (line: string) => void;
  readonly makeNode: (options: NodeOptions) => FleetNode;
}): Promise<Outcome> {
  const { seed, secrets, echo, makeNode } = options;
  const time = simTime();
  const trace = new Trace({ nowMs: () => time.nowMs(), keep: 60, ...(echo && { echo }) });
  const isIdle = seed % 2 === 1;
  const offsets = isIdle ? [0, HOUR_MS, -HOUR_MS] : [0];
  const random = randomOf(seed + 13_000_027);
  const world = await ClusterWorld.start({
    ...{ time, trace, secrets, makeNode, random: randomOf(seed) },
    members: random.chance(0.3) ? 2 : 3,
    clockOffsetMs: random.pick(offsets),
  });
  const script = new Script(randomOf(seed + 1_000_003));
  const play = () => (isIdle ? playIdle(world) : playBusy(world, script));
  const outcome = await outcomeOf({ seed, world, trace, play });
  const { longestLeaderlessMs, longestUndecidedMs, changes } = world.clusterRules;
  echo?.(
    `the leader changed ${changes} times, none led for ${longestLeaderlessMs} ms and none decided for ${longestUndecidedMs} ms at most`,
  );
  return outcome;
}

async function playBusy(world: ClusterWorld, script: Script): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    for (let change = 0; change < 3; change++) operate(world, script);
    disturbCluster(world);
    await run(world, world.random.below(20_000));
  }
  world.calm();
  putRight(world, script);
  for (const { bundle, request } of script.mend()) world.clients.apply(bundle, request);
  await rest(world);
  await run(world, AFTERWARDS_MS);
  assertConverged(world);
  world.clusterRules.conclude(world.revision);
}

async function playIdle(world: ClusterWorld): Promise<void> {
  for (const name of ["web", "api", "worker"])
    world.clients.apply(name, requestOf(name, 1 + world.random.below(4)));
  await rest(world);
  const uids = world.rules.state.pods().map(({ record }) => record.uid);
  const check = (): void => {
    const ended = uids.find((uid) => world.gone.has(uid));
    if (ended !== undefined) world.blame(`a container of pod ${ended} ended`);
    const stopping = world.rules.state.pods().find(({ record }) => record.stoppingSince !== undefined);
    if (stopping !== undefined) world.blame(`pod ${stopping.record.name} is to stop`);
  };
  for (let round = 0; round < ROUNDS; round++) {
    disturbCluster(world);
    await run(world, world.random.below(40_000), check);
  }
  world.calm();
  await run(world, AFTERWARDS_MS, check);
  await rest(world);
  world.clusterRules.conclude(world.revision);
}

async function rest(world: ClusterWorld): Promise<void> {
  const untilMs = world.time.nowMs() + REST_MS;
  do {
    if (world.time.nowMs() >= untilMs) throw new Violation(`no rest: ${whatIsOpen(world)}`);
    await run(world, LOOK_MS);
  } while (whatIsOpen(world) !== undefined);
}

async function run(world: ClusterWorld, ms: number, check: () => void = () => {}): Promise<void> {
  await world.time.runUntil(world.time.nowMs() + ms, () => {
    check();
    return world.violation !== undefined;
  });
  if (world.violation !== undefined) throw world.violation;
}

function requestOf(name: string, replicas: number): ApplyResourcesRequest {
  const resources = { requests: { cpu: "250m", memory: "64Mi" } };
  const container = { name: "main", image: imageOf("good", 1), resources };
  return ApplyResourcesRequest.fromPartial({
    applyId: `apply-${name}`,
    namespace: NAMESPACE,
    resources: [{ name, spec: { $case: "containerService", value: { scaling: { replicas }, container } } }],
    labels: { bundle: name },
  });
}
