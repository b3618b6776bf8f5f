import { type Random, randomOf } from "@forage/common/random";
import { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { serves } from "../../coordinator/src/state/serves.ts";
import { whatIsOpen } from "./convergence.ts";
import { type Outcome, outcomeOf } from "./outcome.ts";
import { imageOf } from "./programs.ts";
import { NAMESPACE } from "./script.ts";
import type { Secrets } from "./sim-coordinator.ts";
import { simTime } from "./sim-time.ts";
import { playTaint, TOLERATION } from "./taint-outage.ts";
import { Trace } from "./trace.ts";
import { Violation } from "./violation.ts";
import { World, type WorldOptions } from "./world.ts";

/** Faults that occur in a fleet at rest. None of them is a node's. */
export const OUTAGES = [
  /** The coordinator's own link is down. */
  "link",
  /** The coordinator's link to most nodes is down. A few nodes are on its side of the cut. */
  "most-links",
  /** The process is stopped by SIGSTOP and continued by SIGCONT. */
  "held-up",
  /** The machine is paused. */
  "suspended",
  "coordinator-down",
  "disk-stall",
  "disk-full",
  "clock-forward",
  "clock-back",
  /** The agent of one node is down for less than half a minute. */
  "agent-down",
  /** The agent of one node is down, and meanwhile the coordinator's wall clock is set an hour forward. */
  "agent-down-clock-forward",
  /** A node is tainted, and the wall clock is set forward while its pods tolerate the taint. */
  "tainted-clock-forward",
  /** A node is tainted, and the wall clock is set back while its pods tolerate the taint. */
  "tainted-clock-back",
] as const;

export type Outage = (typeof OUTAGES)[number];

/** During and after these outages, no endpoint may be withdrawn. */
const KEEPS_ENDPOINTS: ReadonlySet<Outage> = new Set<Outage>([
  "link",
  "most-links",
  "held-up",
  "suspended",
  "disk-stall",
  "disk-full",
  "clock-forward",
  "clock-back",
]);

const REST_MS = 20 * 60_000;
const LOOK_MS = 500;
/** This is longer than every grace period, toleration and back-off together. */
const AFTERWARDS_MS = 5 * 60_000;
const AGENT_DOWN_MS = 25_000;
const CLOCK_JUMP_MS = 3_600_000;

/**
 * Plays one outage of a fleet at rest. Afterwards every container must still run that ran before. The seed alone
 * determines the history.
 */
export async function simulateOutage(options: {
  readonly seed: number;
  readonly secrets: Secrets;
  readonly outage?: Outage;
  readonly echo?: (line: string) => void;
  readonly makeNode: WorldOptions["makeNode"];
}): Promise<Outcome> {
  const { seed, secrets, echo, makeNode } = options;
  const time = simTime();
  const trace = new Trace({ nowMs: () => time.nowMs(), keep: 60, ...(echo && { echo }) });
  const random = randomOf(seed + 7_000_003);
  const outage = options.outage ?? OUTAGES[seed % OUTAGES.length] ?? "link";
  // With the short toleration, pods only survive if the coordinator takes its own outage into account.
  const unreachableTolerationSeconds = outage.startsWith("agent-down") ? undefined : random.pick([3, 30]);
  const world = new World({
    time,
    random: randomOf(seed),
    trace,
    secrets,
    makeNode,
    ...(unreachableTolerationSeconds !== undefined && { nodes: { unreachableTolerationSeconds } }),
  });
  return outcomeOf({ seed, world, trace, play: () => play(world, random, outage), where: outage });
}

async function play(world: World, random: Random, outage: Outage): Promise<void> {
  const isTainted = outage === "tainted-clock-forward" || outage === "tainted-clock-back";
  const tolerations = isTainted ? [TOLERATION] : [];
  for (const name of ["web", "api", "worker"])
    world.clients.apply(name, request(name, 1 + random.below(4), tolerations));
  const untilMs = world.time.nowMs() + REST_MS;
  while (whatIsOpen(world) !== undefined || world.rules.state.pods().length === 0) {
    if (world.time.nowMs() >= untilMs) throw new Violation(`no rest to begin with: ${whatIsOpen(world)}`);
    await world.time.runUntil(world.time.nowMs() + 1_000);
  }
  await world.time.runUntil(world.time.nowMs() + random.below(120_000));
  if (isTainted)
    return playTaint(world, random, outage === "tainted-clock-forward" ? CLOCK_JUMP_MS : -CLOCK_JUMP_MS);
  const uids = world.rules.state.pods().map(({ record }) => record.uid);
  const lengthMs = 5_000 + random.below(random.chance(0.5) ? 55_000 : 595_000);
  world.trace.add("world", `${outage} for ${lengthMs} ms`);
  const end = begin(world, random, outage, lengthMs);
  await watch(world, uids, outage, lengthMs);
  end();
  await watch(world, uids, outage, AFTERWARDS_MS);
  const open = whatIsOpen(world);
  if (open !== undefined) throw new Violation(`no rest afterwards: ${open}`);
}

/** Begins an outage. Returns a function that ends it. */
function begin(world: World, random: Random, outage: Outage, lengthMs: number): () => void {
  const { nodes, coordinator } = world;
  switch (outage) {
    case "link":
    case "most-links": {
      const spared = outage === "link" ? 0 : random.below(Math.ceil(nodes.length * 0.45));
      const cut = nodes.slice(spared);
      for (const node of cut) node.partition("up", "down");
      return () => cut.forEach((node) => void node.heal());
    }
    case "held-up":
    case "suspended":
      coordinator.gate.hold(outage === "suspended");
      // Agents close connections that don't answer, and reconnect again and again.
      for (const node of nodes) node.losePatience(() => !coordinator.gate.held);
      return () => coordinator.gate.release();
    case "coordinator-down":
      world.downMs = lengthMs;
      coordinator.die();
      return () => {
        world.downMs = undefined;
      };
    case "disk-stall":
      world.stalledUntilMs = world.time.nowMs() + lengthMs;
      disturbLinks(world, random, lengthMs);
      return () => {};
    case "disk-full":
      world.diskFull = true;
      disturbLinks(world, random, lengthMs);
      return () => {
        world.diskFull = false;
      };
    case "clock-forward":
      coordinator.gate.wallJumpMs += CLOCK_JUMP_MS;
      disturbLinks(world, random, lengthMs);
      return () => {};
    case "clock-back":
      coordinator.gate.wallJumpMs -= CLOCK_JUMP_MS;
      disturbLinks(world, random, lengthMs);
      return () => {};
    case "agent-down-clock-forward":
      world.time.schedule(random.below(AGENT_DOWN_MS), () => {
        coordinator.gate.wallJumpMs += CLOCK_JUMP_MS;
      });
      random.pick(nodes).restartAgent(random.below(AGENT_DOWN_MS));
      return () => {};
    case "agent-down":
      random.pick(nodes).restartAgent(random.below(AGENT_DOWN_MS));
      return () => {};
    case "tainted-clock-forward":
    case "tainted-clock-back":
      throw new Error("a taint is played by itself");
    default:
      return outage satisfies never;
  }
}

/** Disturbs links during the outage, so statuses have to be written and agents have to reconnect meanwhile. */
function disturbLinks({ nodes, time }: World, random: Random, lengthMs: number): void {
  for (const node of nodes) {
    time.schedule(random.below(lengthMs), () => node.reportAgain());
    if (random.chance(0.3)) time.schedule(random.below(lengthMs), () => node.breakStream());
  }
}

async function watch(world: World, uids: readonly string[], outage: Outage, lengthMs: number): Promise<void> {
  const untilMs = world.time.nowMs() + lengthMs;
  while (world.time.nowMs() < untilMs) {
    await world.time.runUntil(Math.min(untilMs, world.time.nowMs() + LOOK_MS), () => {
      check(world, uids, outage);
      return world.violation !== undefined;
    });
    if (world.violation !== undefined) throw world.violation;
  }
}

function check(world: World, uids: readonly string[], outage: Outage): void {
  const ended = uids.find((uid) => world.gone.has(uid));
  if (ended !== undefined) throw new Violation(`a container of pod ${ended} ended`);
  const { coordinator, rules } = world;
  const stopping = rules.state.pods().find(({ record }) => record.stoppingSince !== undefined);
  if (stopping !== undefined) throw new Violation(`pod ${stopping.record.name} is to stop`);
  if (!KEEPS_ENDPOINTS.has(outage) || !coordinator.up) return;
  const { state } = coordinator.core;
  for (const { name } of world.nodes)
    if (!serves(state.node(name))) throw new Violation(`endpoints on ${name} were withdrawn`);
}

function request(
  name: string,
  replicas: number,
  tolerations: readonly (typeof TOLERATION)[],
): ApplyResourcesRequest {
  const resources = { requests: { cpu: "250m", memory: "64Mi" } };
  const container = { name: "main", image: imageOf("good", 1), resources };
  const value = { scaling: { replicas }, container, podConfig: { tolerations: [...tolerations] } };
  return ApplyResourcesRequest.fromPartial({
    applyId: `apply-${name}`,
    namespace: NAMESPACE,
    resources: [{ name, spec: { $case: "containerService", value } }],
    labels: { bundle: name },
  });
}
