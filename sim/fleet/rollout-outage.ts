import { type Random, randomOf } from "@forage/common/random";
import { AttemptState } from "@forage/proto/forage/store/v1/store";
import { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { whatIsOpen } from "./convergence.ts";
import { type Outcome, outcomeOf } from "./outcome.ts";
import { imageOf } from "./programs.ts";
import { NAMESPACE } from "./script.ts";
import type { Secrets } from "./sim-coordinator.ts";
import { simTime } from "./sim-time.ts";
import { Trace } from "./trace.ts";
import { Violation } from "./violation.ts";
import { World, type WorldOptions } from "./world.ts";

/** Faults of the coordinator alone. None of them may fail a rollout. */
const OUTAGES = [
  "disk-stall",
  "disk-full",
  "held-up",
  "suspended",
  "coordinator-down",
  "clock-forward",
  "clock-back",
] as const;

type Outage = (typeof OUTAGES)[number];

const REST_MS = 20 * 60_000;
/** The time after the start of the rollout within which the outage begins. A rollout takes less. */
const BEGUN_MS = 4_000;
/** The world's progress deadline is shorter than any of the outages. */
const OUTAGE_MIN_MS = 130_000;
const OUTAGE_SPREAD_MS = 400_000;
const CLOCK_STEP_MS = 3_600_000;

/**
 * Plays one outage of the coordinator while a service is rolled out to a working version. The seed alone determines the
 * history.
 */
export async function simulateRolloutOutage(options: {
  readonly seed: number;
  readonly secrets: Secrets;
  readonly echo?: (line: string) => void;
  readonly makeNode: WorldOptions["makeNode"];
}): Promise<Outcome> {
  const { seed, secrets, echo, makeNode } = options;
  const time = simTime();
  const trace = new Trace({ nowMs: () => time.nowMs(), keep: 60, ...(echo && { echo }) });
  const random = randomOf(seed + 9_000_011);
  const outage = OUTAGES[seed % OUTAGES.length] ?? "disk-stall";
  const world = new World({ time, random: randomOf(seed), trace, secrets, makeNode });
  return outcomeOf({ seed, world, trace, play: () => play(world, random, outage), where: outage });
}

async function play(world: World, random: Random, outage: Outage): Promise<void> {
  const { time, clients, trace } = world;
  const replicas = 1 + random.below(4);
  clients.apply("web", request(1, replicas));
  await rest(world);
  clients.apply("web", request(2, replicas));
  await time.runUntil(time.nowMs() + random.below(BEGUN_MS));
  const lengthMs = OUTAGE_MIN_MS + random.below(OUTAGE_SPREAD_MS);
  trace.add("world", `${outage} for ${lengthMs} ms`);
  const end = begin(world, outage, lengthMs);
  await time.runUntil(time.nowMs() + lengthMs, () => world.violation !== undefined);
  end();
  await rest(world);
  const attempt = attemptOf(world);
  if (attempt?.state !== AttemptState.SUCCEEDED)
    throw new Violation(`a good version was not rolled out: ${attempt?.message}`);
}

async function rest(world: World): Promise<void> {
  const untilMs = world.time.nowMs() + REST_MS;
  do {
    if (world.time.nowMs() >= untilMs) throw new Violation(`no rest: ${whatIsOpen(world)}`);
    await world.time.runUntil(world.time.nowMs() + 1_000, () => world.violation !== undefined);
    if (world.violation !== undefined) throw world.violation;
  } while (whatIsOpen(world) !== undefined || attemptOf(world) === undefined);
}

function attemptOf(world: World) {
  const status = world.rules.state.workloadStatuses.all()[0]?.record.status;
  return status?.$case === "containerService" ? status.value.attempt : undefined;
}

/** Begins an outage. Returns a function that ends it. */
function begin(world: World, outage: Outage, lengthMs: number): () => void {
  const { coordinator, nodes } = world;
  switch (outage) {
    case "disk-stall":
      world.stallDisk(lengthMs);
      return () => {};
    case "disk-full":
      world.fillDisk(lengthMs);
      return () => {};
    case "held-up":
    case "suspended":
      coordinator.gate.hold(outage === "suspended");
      for (const node of nodes) node.losePatience(() => !coordinator.gate.held);
      return () => coordinator.gate.release();
    case "coordinator-down":
      world.downMs = lengthMs;
      coordinator.die();
      return () => {
        world.downMs = undefined;
      };
    case "clock-forward":
      world.jumpWallClock(CLOCK_STEP_MS);
      return () => {};
    case "clock-back":
      world.jumpWallClock(-CLOCK_STEP_MS);
      return () => {};
    default:
      return outage satisfies never;
  }
}

function request(version: number, replicas: number): ApplyResourcesRequest {
  const resources = { requests: { cpu: "250m", memory: "64Mi" } };
  const container = { name: "main", image: imageOf("good", version), resources };
  const value = { scaling: { replicas }, container };
  return ApplyResourcesRequest.fromPartial({
    applyId: `apply-${version}`,
    namespace: NAMESPACE,
    resources: [{ name: "web", spec: { $case: "containerService", value } }],
    labels: { bundle: "web" },
  });
}
