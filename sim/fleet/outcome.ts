import type { Trace } from "./trace.ts";
import { Violation } from "./violation.ts";
import type { World } from "./world.ts";

export interface Outcome {
  readonly seed: number;
  /** Undefined if no rule was violated. */
  readonly violation: Violation | undefined;
  readonly lastLines: readonly string[];
  /** A hash that is equal for equal histories. */
  readonly digest: string;
  readonly writes: number;
  readonly virtualMs: number;
}

/**
 * Plays a history, ends its world, and returns the outcome. A violated rule is part of the outcome; `where` identifies
 * the history.
 */
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
