import { type Clock, pause } from "../clock.ts";
import { describeAnswer, type ProbeAnswer } from "../probes/probe-answer.ts";
import type { ProbeTarget, RunProbe } from "../probes/run-probe.ts";
import type { HookAction, HookResult } from "./hook.ts";

/**
 * The limit of a post_start hook. Kubernetes has none, so a container may remain neither started nor failed. The value
 * allows for the longest known start: a database that restores itself.
 */
export const POST_START_LIMIT_MS = 600_000;
/** The limit of each attempt over the network. Kubernetes has none here either. */
const ATTEMPT_LIMIT_MS = 30_000;
/**
 * The time for which a post_start hook retries to connect, because a process that has just started does not listen yet.
 */
const LISTEN_WAIT_MS = 30_000;
const RETRY_MS = 250;

export interface HookOptions {
  readonly clock: Clock;
  readonly run: RunProbe;
}

/**
 * Runs the hook once the container has started. After `failed` the container is killed, with the message as the reason,
 * and its restart policy decides what follows. Over the network any HTTP status is a success, as in Kubernetes; only an
 * unreachable server is a failure.
 */
export async function runPostStart(
  options: HookOptions,
  action: HookAction,
  target: ProbeTarget,
  signal: AbortSignal,
): Promise<HookResult> {
  if (action.type === "exec") {
    return resultOf("post_start", await options.run(action, target, POST_START_LIMIT_MS, signal), signal);
  }
  const untilMs = options.clock.monotonicMs() + LISTEN_WAIT_MS;
  for (;;) {
    const answer = await options.run(action, target, ATTEMPT_LIMIT_MS, signal);
    const result = resultOf("post_start", answer, signal);
    if (result.outcome !== "failed" || options.clock.monotonicMs() + RETRY_MS > untilMs) return result;
    await pause(options.clock, RETRY_MS, signal);
  }
}

/**
 * Runs the hook before the stop signal, for at most `limitMs`: the grace period, which the hook's duration reduces (see
 * `remainingGraceMs`). The container is stopped afterwards in any case. A failure is only reported.
 */
export async function runPreStop(
  options: HookOptions,
  action: HookAction,
  target: ProbeTarget,
  limitMs: number,
  signal: AbortSignal,
): Promise<HookResult> {
  return resultOf("pre_stop", await options.run(action, target, limitMs, signal), signal);
}

function resultOf(hook: "post_start" | "pre_stop", answer: ProbeAnswer, signal: AbortSignal): HookResult {
  if (signal.aborted) return { outcome: "aborted" };
  const isDone = answer.outcome === "success" || answer.httpStatus !== undefined;
  const message = `${hook} hook${isDone ? "" : " failed"}: ${describeAnswer(answer)}`;
  return { outcome: isDone ? "done" : "failed", message };
}
