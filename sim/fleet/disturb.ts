import type { Random } from "@forage/common/random";
import { poisons } from "./poisons.ts";
import type { World } from "./world.ts";

/** Causes one fault of the fleet, or none. */
export function disturb(world: World): void {
  const { random, nodes } = world;
  const node = random.pick(nodes);
  const choice = random.next();
  if (choice < 0.08) node.crash();
  else if (choice < 0.2) node.boot();
  else if (choice < 0.25) node.partition("up", "down");
  else if (choice < 0.28) node.partition(random.pick(["up", "down"]));
  else if (choice < 0.38) node.heal();
  else if (choice < 0.44) node.breakStream();
  else if (choice < 0.48) node.restartAgent();
  else if (choice < 0.54) node.crashContainer();
  else if (choice < 0.6) world.coordinator.die();
  else if (choice < 0.64) world.registryUp = !world.registryUp;
  else if (choice < 0.68) world.storeSlowMs = random.pick([0, 2, 20, 300]);
  else if (choice < 0.72) node.way.latencyMs = random.pick([1, 5, 100, 1_000]);
  else if (choice < 0.76) world.crashShare = random.pick([0, 0.01, 0.1]);
  else if (choice < 0.79) pause(world, lengthMs(random));
  else if (choice < 0.82) world.stallDisk(lengthMs(random));
  else if (choice < 0.84) world.fillDisk(lengthMs(random));
  else if (choice < 0.87) node.stallDisk(lengthMs(random));
  else if (choice < 0.9) world.jumpWallClock(aClockStep(world));
  else if (choice < 0.93) poison(world);
  else if (choice < 0.97) node.fillDisk(lengthMs(random));
  else node.jumpWallClock(aClockStep(world));
}

const DAY_MS = 86_400_000;

function aClockStep({ random }: World): number {
  return random.pick([-DAY_MS, -60_000, 60_000, DAY_MS]);
}

const LONGEST_MS = 600_000;

/** Returns a duration that is mostly less than a minute, and sometimes up to ten. */
export function lengthMs(random: Random): number {
  return 5_000 + random.below(random.chance(0.8) ? 55_000 : LONGEST_MS - 5_000);
}

/** Pauses the coordinator's process, alone or with its machine. */
function pause(world: World, forMs: number): void {
  const { coordinator, nodes, random, time, trace } = world;
  if (coordinator.gate.held) return;
  trace.add("world", `the coordinator is held up for ${forMs} ms`);
  coordinator.gate.hold(random.chance(0.3));
  // Agents close connections that don't answer, and reconnect again and again.
  for (const node of nodes) node.losePatience(() => !coordinator.gate.held);
  time.schedule(forMs, () => coordinator.gate.release());
}

/** This resource makes 10,000 pods, too many for a history that is played a thousand times. */
const COSTLY = "container service: more replicas than any fleet takes";

function poison(world: World): void {
  const { random } = world;
  const what = random.pick(Object.keys(poisons).filter((it) => it !== COSTLY));
  world.poison(what, poisons[what]?.(random.pick(world.nodes).name) ?? []);
}
