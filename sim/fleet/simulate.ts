import { randomOf } from "@forage/common/random";
import { assertConverged, whatIsOpen } from "./convergence.ts";
import { disturb } from "./disturb.ts";
import { disturbHost } from "./disturb-host.ts";
import type { Fate } from "./life-store.ts";
import { operate, putRight } from "./operate.ts";
import { type Outcome, outcomeOf } from "./outcome.ts";
import { Script } from "./script.ts";
import type { Secrets } from "./sim-coordinator.ts";
import { simTime } from "./sim-time.ts";
import { Trace } from "./trace.ts";
import { Violation } from "./violation.ts";
import { World, type WorldOptions } from "./world.ts";

export interface SimulationOptions {
  readonly seed: number;
  readonly secrets: Secrets;
  /** If set, returns the result of each write by its number, and there are no other faults. */
  readonly fateOf?: (write: number) => Fate;
  /**
   * If set, the wall clock of the coordinator's machine is set back by a day again and again, and there are no other
   * faults.
   */
  readonly setsClockBack?: boolean;
  readonly echo?: (line: string) => void;
  readonly makeNode: WorldOptions["makeNode"];
}

const KEPT_LINES = 40;
const ROUNDS = 20;
/** This is longer than back-offs, deadlines and slow images together. */
const CALM_MS = 30 * 60_000;
const LOOK_MS = 5_000;
/** The time for which events are still written. The end of a mass loss is recorded after its recovery grace of 30 s. */
const LAST_WORDS_MS = 45_000;
const DAY_MS = 86_400_000;
/** The time after which a fleet at rest must have written nothing. */
const QUIET_MS = 120_000;

/** Plays one history of a fleet. The seed alone determines the history. */
export async function simulate(options: SimulationOptions): Promise<Outcome> {
  const { seed, secrets, fateOf, setsClockBack = false, echo, makeNode } = options;
  const time = simTime();
  const trace = new Trace({ nowMs: () => time.nowMs(), keep: KEPT_LINES, ...(echo && { echo }) });
  const world = new World({
    ...{ time, random: randomOf(seed), trace, secrets },
    ...(fateOf && { fateOf }),
    makeNode,
  });
  // In the other half of the histories, only the coordinator and the network have faults.
  const hostsFail = seed % 2 === 1;
  const script = new Script(randomOf(seed + 1_000_003), { withProbesAndVolumes: hostsFail });
  const hostFaults = hostsFail ? randomOf(seed + 2_000_003) : undefined;
  const disturbances = (): void => {
    if (fateOf !== undefined) return;
    if (setsClockBack) setClockBack(world);
    else disturb(world);
    if (!setsClockBack && hostFaults !== undefined) disturbHost(world, hostFaults);
  };
  return outcomeOf({ seed, world, trace, play: () => play(world, script, disturbances) });
}

function setClockBack(world: World): void {
  if (world.random.chance(0.5)) world.jumpWallClock(-DAY_MS);
}

async function play(world: World, script: Script, disturbances: () => void): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    operate(world, script);
    disturbances();
    const waitMs = world.random.chance(0.6) ? world.random.below(5_000) : world.random.below(60_000);
    await run(world, waitMs);
  }
  world.calm();
  putRight(world, script);
  for (const { bundle, request } of script.mend()) world.clients.apply(bundle, request);
  const untilMs = world.time.nowMs() + CALM_MS;
  while (whatIsOpen(world) !== undefined) {
    if (world.time.nowMs() >= untilMs)
      throw new Violation(`no rest after ${CALM_MS / 60_000} min: ${whatIsOpen(world)}`);
    await run(world, LOOK_MS);
  }
  // A coordinator that dies while it writes a report about images would write again when it starts.
  world.fatesGoOn = false;
  await run(world, LAST_WORDS_MS);
  const { soundRevision } = world;
  await run(world, QUIET_MS);
  if (world.soundRevision !== soundRevision)
    throw new Violation("records were written after all had come to rest");
  assertConverged(world);
}

async function run(world: World, ms: number): Promise<void> {
  await world.time.runUntil(world.time.nowMs() + ms, () => world.violation !== undefined);
  if (world.violation !== undefined) throw world.violation;
}
