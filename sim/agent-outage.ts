import { isDeepStrictEqual } from "node:util";
import { type Random, randomOf } from "@forage/common/random";
import { ApplyResourcesRequest, type DeepPartial, type ForageResource } from "@forage/proto/forest/v1/forage";
import { whatIsOpen } from "./fleet/convergence.ts";
import { type Outcome, outcomeOf } from "./fleet/outcome.ts";
import { imageOf } from "./fleet/programs.ts";
import { NAMESPACE } from "./fleet/script.ts";
import type { Secrets } from "./fleet/sim-coordinator.ts";
import { simTime } from "./fleet/sim-time.ts";
import { Trace } from "./fleet/trace.ts";
import { Violation } from "./fleet/violation.ts";
import { World } from "./fleet/world.ts";
import { RealNode } from "./real-node.ts";

/** Faults of hosts that begin while agents wait for something or write something. */
const OUTAGES = [
  /** The wall clocks are set while agents wait to retry the pull of an image. */
  "clock-in-image-back-off",
  /** The wall clocks are set while agents wait to restart containers that crashed. */
  "clock-in-restart-back-off",
  /** The disks are full when pods are assigned. */
  "full-at-assignment",
  /** The disks are full when pods are assigned, and the agents restart before there is space. */
  "full-at-assignment-and-restart",
  /** The disks are full while containers end and restart, and the agents restart. */
  "full-at-restart",
  /** The disks are full when the pods of a job end. The hosts reboot with space, and without the coordinator. */
  "full-at-end",
  /** The disks are full when pods are removed, and the agents restart without the coordinator. */
  "full-at-removal",
] as const;

type Outage = (typeof OUTAGES)[number];

const ENDS_CONTAINERS: ReadonlySet<Outage> = new Set([
  "clock-in-restart-back-off",
  "full-at-restart",
  "full-at-end",
]);

const DAY_MS = 86_400_000;
/** This is longer than the agents' longest back-off and the coordinator's delays together. */
const REST_MS = 12 * 60_000;
const REPLICAS = 4;
const RESOURCES = { requests: { cpu: "250m", memory: "64Mi" } };

/**
 * Plays one fault of all hosts. Afterwards everything must run, and no container may have ended without need. The seed
 * alone determines the history.
 */
export async function simulateAgentOutage(options: {
  readonly seed: number;
  readonly secrets: Secrets;
  readonly echo?: (line: string) => void;
}): Promise<Outcome> {
  const { seed, secrets, echo } = options;
  const time = simTime();
  const trace = new Trace({ nowMs: () => time.nowMs(), keep: 60, ...(echo && { echo }) });
  const random = randomOf(seed + 11_000_003);
  const outage = OUTAGES[seed % OUTAGES.length] ?? "full-at-assignment";
  const world = new World({
    ...{ time, random: randomOf(seed), trace, secrets },
    makeNode: (given) => new RealNode(given),
  });
  return outcomeOf({ seed, world, trace, play: () => play(world, random, outage), where: outage });
}

async function play(world: World, random: Random, outage: Outage): Promise<void> {
  apply(world, "api", REPLICAS);
  await rest(world);
  switch (outage) {
    case "clock-in-image-back-off":
      world.registryUp = false;
      apply(world, "web", REPLICAS);
      await pass(world, 20_000 + random.below(40_000));
      setClocks(world, random);
      await pass(world, random.below(40_000));
      world.registryUp = true;
      break;
    case "clock-in-restart-back-off":
      for (let crash = 0; crash < 6; crash++) {
        for (const node of world.nodes) node.crashContainer();
        await pass(world, 3_000);
      }
      setClocks(world, random);
      break;
    case "full-at-assignment":
    case "full-at-assignment-and-restart":
      for (const node of world.nodes) node.fillDisk(60_000);
      apply(world, "web", REPLICAS);
      await pass(world, random.below(55_000));
      if (outage === "full-at-assignment-and-restart") restartAgents(world);
      await pass(world, 60_000);
      break;
    case "full-at-restart":
      for (const node of world.nodes) node.fillDisk(60_000);
      for (const node of world.nodes) node.crashContainer();
      await pass(world, random.below(20_000));
      restartAgents(world);
      await pass(world, 60_000);
      break;
    case "full-at-end":
      applyJob(world);
      await pass(world, 4_000 + random.below(4_000));
      for (const node of world.nodes) node.fillDisk(60_000);
      await pass(world, random.below(30_000));
      for (const node of world.nodes) node.crash();
      await pass(world, 60_000);
      for (const node of world.nodes) node.partition("up", "down");
      for (const node of world.nodes) node.boot();
      await pass(world, 20_000);
      for (const node of world.nodes) node.heal();
      break;
    case "full-at-removal":
      apply(world, "web", REPLICAS);
      await rest(world);
      for (const node of world.nodes) node.fillDisk(60_000);
      world.clients.delete("web", NAMESPACE, { bundle: "web" });
      await pass(world, 3_000 + random.below(27_000));
      for (const node of world.nodes) node.partition("up", "down");
      restartAgents(world);
      await pass(world, 20_000);
      for (const node of world.nodes) node.heal();
      await pass(world, 20_000);
      break;
    default:
      outage satisfies never;
  }
  await rest(world);
  // The agents must have written their state to disk by now.
  const before = restartsOf(world);
  restartAgents(world);
  await pass(world, 20_000);
  await rest(world);
  if (!isDeepStrictEqual(restartsOf(world), before))
    throw new Violation(`agents that started again count other restarts of containers`);
  if (ENDS_CONTAINERS.has(outage)) return;
  const ended = world.rules.state.pods().find(({ record }) => world.gone.has(record.uid))?.record.name;
  if (ended !== undefined) throw new Violation(`a container of pod ${ended} ended`);
}

/** Sets the clocks of all hosts back or forward by a day. */
function setClocks(world: World, random: Random): void {
  const byMs = random.pick([-DAY_MS, DAY_MS]);
  for (const node of world.nodes) node.jumpWallClock(byMs);
}

function restartsOf(world: World): Readonly<Record<string, number>> {
  return Object.fromEntries(
    world.rules.state
      .pods()
      .map(({ record, status }) => [record.name, status?.containers[0]?.restartCount ?? -1] as const)
      .sort(([a], [b]) => a.localeCompare(b)),
  );
}

function restartAgents(world: World): void {
  for (const node of world.nodes) node.restartAgent();
}

async function rest(world: World): Promise<void> {
  const untilMs = world.time.nowMs() + REST_MS;
  do {
    if (world.time.nowMs() >= untilMs) throw new Violation(`no rest: ${openIn(world)}`);
    await pass(world, 1_000);
  } while (openIn(world) !== undefined || world.rules.state.pods().length === 0);
}

/** Returns what is not at rest. A journal with unwritten entries counts, too. */
function openIn(world: World): string | undefined {
  const unwritten = world.rules.state
    .nodes()
    .find(({ report }) =>
      report?.report?.conditions.some(({ type, status }) => type === "DiskPressure" && status),
    );
  return whatIsOpen(world) ?? (unwritten && `the journal of ${unwritten.name} is not written`);
}

async function pass(world: World, ms: number): Promise<void> {
  await world.time.runUntil(world.time.nowMs() + ms, () => world.violation !== undefined);
  if (world.violation !== undefined) throw world.violation;
}

function applyJob(world: World): void {
  const container = { name: "main", image: imageOf("task", 1), resources: RESOURCES };
  const jobConfig = {
    ...{ completions: REPLICAS, parallelism: REPLICAS, restartPolicy: "OnFailure" },
    ttlSecondsAfterFinished: 0n,
  };
  submit(world, "batch", { $case: "job", value: { container, jobConfig } });
}

function apply(world: World, name: string, replicas: number): void {
  // Deadlines of rollouts are tested elsewhere.
  const podConfig = { annotations: { "forage.dev/progress-deadline": "3600s" } };
  const image = imageOf("good", name === "web" ? 2 : 1);
  const container = { name: "main", image, resources: RESOURCES };
  submit(world, name, { $case: "containerService", value: { scaling: { replicas }, container, podConfig } });
}

function submit(world: World, name: string, spec: DeepPartial<ForageResource>["spec"]): void {
  world.clients.apply(
    name,
    ApplyResourcesRequest.fromPartial({
      applyId: `apply-${name}`,
      namespace: NAMESPACE,
      resources: [{ name, spec }],
      labels: { bundle: name },
    }),
  );
}
