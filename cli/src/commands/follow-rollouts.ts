import { GetRolloutResponse } from "@forage/proto/forage/operator/v1/operator";
import type { Coordinator } from "../client/coordinator.ts";
import { type Context, printOne } from "../context.ts";
import { CliError } from "../errors.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { followRollout } from "../rollout/follow.ts";
import { outcomeOf, type ResourceState, worst } from "../rollout/outcome.ts";
import { type Progress, showProgress } from "../rollout/progress.ts";
import { summarize } from "../rollout/summary.ts";

interface Ended {
  readonly rollout?: GetRolloutResponse;
  readonly error?: unknown;
}

/**
 * Follows rollouts concurrently until all have ended, prints their progress, and returns the worst
 * exit code.
 */
export async function followRollouts(
  context: Context,
  coordinator: Coordinator,
  rolloutIds: readonly string[],
  { single = false }: { readonly single?: boolean } = {},
): Promise<ExitCode> {
  const { world, paintError } = context;
  const startedMs = world.nowMs();
  const progress = showProgress(world.stderr, paintError);
  const ended = await Promise.all(rolloutIds.map((id) => follow(context, coordinator, id, progress)));
  const rollouts = ended.flatMap(({ rollout }) => rollout ?? []);
  progress.close(rollouts.flatMap(failedResources));
  const broken = ended.find(({ error }) => error !== undefined);
  if (broken !== undefined) throw withHint(broken.error, rolloutIds);
  const tookMs = world.nowMs() - startedMs;
  printOne(
    context,
    () => {
      const values = rollouts.map((rollout) => GetRolloutResponse.toJSON(rollout));
      return single ? values[0] : values;
    },
    () => rollouts.map((rollout) => `${textOf(context, rollout, tookMs)}\n`).join(""),
  );
  return worst(rollouts.map(({ resources }) => outcomeOf(resources)));
}

function textOf({ format }: Context, rollout: GetRolloutResponse, tookMs: number): string {
  return format === "name" ? rollout.rolloutId : summarize(rollout, tookMs);
}

async function follow(
  context: Context,
  coordinator: Coordinator,
  rolloutId: string,
  progress: Progress,
): Promise<Ended> {
  const { world, signal } = context;
  try {
    const rollout = await followRollout(rolloutId, {
      coordinator,
      signal,
      nowMs: world.nowMs,
      random: world.random,
      onState: (state) => progress.state(rolloutId, state),
      onLost: () => progress.note("the coordinator doesn't answer; trying again, the rollout continues"),
      onFound: () => progress.note("the coordinator answers again"),
    });
    return { rollout };
  } catch (error) {
    return { error };
  }
}

/** Adds to the error that the rollout continues although the command no longer waits. */
function withHint(error: unknown, rolloutIds: readonly string[]): unknown {
  if (!(error instanceof CliError) || (error.code !== "INTERRUPTED" && error.code !== "TIMED_OUT"))
    return error;
  const what = error.code === "TIMED_OUT" ? "the time is over" : "not waiting any longer";
  const lines = rolloutIds.map((id) => `  forage rollout status ${id} --watch`);
  return new CliError(error.code, [`${what}; the rollout continues. Follow it with`, ...lines].join("\n"), {
    cause: error,
    exitCode: error.exitCode,
  });
}

function failedResources({ resources }: GetRolloutResponse): ResourceState[] {
  return resources.filter((resource) => outcomeOf([resource]) !== EXIT.ok);
}
