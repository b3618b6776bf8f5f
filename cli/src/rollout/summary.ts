import type { GetRolloutResponse } from "@forage/proto/forage/operator/v1/operator";
import { formatAge } from "../duration.ts";
import { EXIT } from "../exit-code.ts";
import { toMs } from "../view/timestamp.ts";
import { isFinal, isOver, outcomeOf } from "./outcome.ts";

/** The duration below which tenths of seconds are shown. */
const PRECISE_BELOW_MS = 10_000;

/** Describes the state of a rollout in one line: `rollout r-1 done: 2 resources in 3.2s`. */
export function summarize(rollout: GetRolloutResponse, tookMs?: number): string {
  const { rolloutId, resources } = rollout;
  const count = resources.length === 1 ? "1 resource" : `${resources.length} resources`;
  if (!isOver(rollout)) {
    const ended = resources.filter(({ status }) => isFinal(status)).length;
    return `rollout ${rolloutId} is in progress: ${ended} of ${count} ended`;
  }
  const took = tookMs === undefined ? "" : ` in ${formatTook(tookMs)}`;
  const bad = resources.filter((resource) => outcomeOf([resource]) !== EXIT.ok);
  if (bad.length === 0) return `rollout ${rolloutId} done: ${count}${took}`;
  const names = bad.map(({ kind, name }) => `${kind}/${name}`).join(", ");
  return `rollout ${rolloutId} ${verdict(outcomeOf(resources))}: ${names} (${bad.length} of ${count})${took}`;
}

/**
 * Returns a text such as `, ended 3h ago`, because the messages of a rollout describe that time.
 * Empty while the rollout is in progress.
 */
export function endedText(rollout: GetRolloutResponse, nowMs: number): string {
  const times = rollout.resources.flatMap(({ finishedAt }) =>
    finishedAt === undefined ? [] : [toMs(finishedAt)],
  );
  if (!isOver(rollout) || times.length === 0) return "";
  return `, ended ${formatAge(Math.max(0, nowMs - Math.max(...times)))} ago`;
}

function verdict(outcome: number): string {
  if (outcome === EXIT.notPlaced) return "not placed";
  return outcome === EXIT.rolledBack ? "rolled back" : "failed";
}

function formatTook(ms: number): string {
  return ms < PRECISE_BELOW_MS ? `${(ms / 1000).toFixed(1)}s` : formatAge(ms);
}
