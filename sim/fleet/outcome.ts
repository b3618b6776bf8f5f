import type { Trace } from "./trace.ts";
import { Violation } from "./violation.ts";
import type { World } from "./world.ts";

export interface Outcome {
  readonly seed: number;
  /** Undefined: all was as it must be. */
  readonly violation: Violation | undefined;
  readonly lastLines: readonly string[];
  /** Equal for equal histories. */
  readonly digest: string;
  readonly writes: number;
  readonly virtualMs: number;
}

/** Plays a history, ends its world, and returns what became of it. A violation of a rule is part of the outcome; `where` names its place. */
export async function outcomeOf(options: {
  readonly seed: number;
  readonly world: Pick<World, "time" | "violation" | "writes" | "blame" | "end">;
  readonly trace: Trace;
  readonly play: () => Promise<void>;
  readonly where?: string;
}): Promise<Outcome> {
  const { seed, world, trace, play, where } = options;
  const { time } = world;
  const startMs = time.nowMs();
  try {
    await play();
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    world.blame(where === undefined ? error.message : `${where}: ${error.message}`);
  } finally {
    world.end();
  }
  return {
    seed,
    violation: world.violation,
    lastLines: trace.last(),
    digest: trace.digest(),
    writes: world.writes,
    virtualMs: time.nowMs() - startMs,
  };
}
