import type { GetRolloutResponse } from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, forest, operator } from "../client/coordinator.ts";
import { CallError } from "../client/explain.ts";
import { CliError } from "../errors.ts";
import { pause } from "../pause.ts";
import { isOver, type ResourceState } from "./outcome.ts";

export interface FollowOptions {
  readonly coordinator: Pick<Coordinator, "call" | "stream">;
  readonly signal: AbortSignal;
  readonly nowMs: () => number;
  /** Returns a number from 0 to 1, which spreads the attempts of many clients. */
  readonly random: () => number;
  readonly onState: (state: ResourceState) => void;
  /** Called when the coordinator can't be reached. */
  readonly onLost: () => void;
  /** Called when the coordinator can be reached again. */
  readonly onFound: () => void;
  /** Waits between attempts. Default: `pause`, in real time. */
  readonly wait?: typeof pause;
}

const FIRST_PAUSE_MS = 250;
/**
 * The longest delay between attempts: short enough to seem immediate after a restart, and long
 * enough to cause little load.
 */
const LONGEST_PAUSE_MS = 5_000;
/**
 * The time without an answer after which following fails. An upgrade of the coordinator's host
 * takes minutes.
 */
const LONGEST_SILENCE_MS = 10 * 60_000;

/**
 * Reports every change until the rollout has ended, and returns its final state. Reopens a stream
 * that breaks or that ends with the coordinator; the new stream begins with the complete state.
 */
export async function followRollout(rolloutId: string, options: FollowOptions): Promise<GetRolloutResponse> {
  const { coordinator, signal, nowMs, wait = pause } = options;
  let pauseMs = FIRST_PAUSE_MS;
  let lastHeardMs = nowMs();
  let lost = false;
  while (true) {
    try {
      for await (const event of coordinator.stream(forest.watchRollout, { rolloutId }, signal)) {
        lastHeardMs = nowMs();
        pauseMs = FIRST_PAUSE_MS;
        if (lost) options.onFound();
        lost = false;
        const { resourceKind: kind, resourceName: name, status, message } = event;
        options.onState({ kind, name, status, message });
      }
      const rollout = await coordinator.call(operator.getRollout, {
        by: { $case: "rolloutId", value: rolloutId },
      });
      if (isOver(rollout)) return { ...rollout, finished: true };
      lastHeardMs = nowMs();
    } catch (error) {
      if (!(error instanceof CallError && error.passing)) throw error;
      const silentMs = nowMs() - lastHeardMs;
      if (silentMs > LONGEST_SILENCE_MS) throw tooSilent(rolloutId, silentMs, error);
      if (!lost) options.onLost();
      lost = true;
    }
    await wait(pauseMs * options.random(), signal);
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
  }
}

function tooSilent(rolloutId: string, silentMs: number, cause: CallError): CliError {
  const minutes = Math.round(silentMs / 60_000);
  return new CliError(
    cause.code,
    `${cause.message}; tried for ${minutes} minutes. The rollout may still be in progress: forage rollout status ${rolloutId} --watch`,
    { cause },
  );
}
