import { AttemptState, type RolloutAttempt } from "@forage/proto/forage/store/v1/store";
import type { EventInput } from "../../model/event.ts";
import type { ResourceEntry } from "../../state/entries.ts";
import type { WorkloadStep } from "./workload-step.ts";

/** The largest number of names in a message. */
const MAX_NAMED = 5;

/** Returns the events of the executed steps. Pure. */
export function stepEvents(
  { record }: ResourceEntry,
  before: RolloutAttempt | undefined,
  steps: readonly WorkloadStep[],
): EventInput[] {
  const { namespace, kind, name, rolloutId } = record;
  const about = { namespace, kind, name, rolloutId };
  const begun = steps.flatMap((step) => eventsOf(step, before));
  return [...begun, ...stops(steps)].map((event) => ({ ...about, ...event }));
}

type RolloutEvent = Pick<EventInput, "type" | "reason" | "message">;

function eventsOf(step: WorkloadStep, before: RolloutAttempt | undefined): RolloutEvent[] {
  switch (step.type) {
    case "start-rollout": {
      const superseded =
        before?.state === AttemptState.PROGRESSING || before?.state === AttemptState.ROLLING_BACK;
      const started = normal("RolloutStarted", step.why);
      const over = `the rollout of revision ${before?.revision} was superseded by revision ${step.revision.number}`;
      return superseded ? [normal("Superseded", over), started] : [started];
    }
    case "update-rollout":
      return [ended(step, before)];
    case "create-pods":
      return [normal("CreatedPods", `${podsText(step.count)} created: ${step.why}`)];
    default:
      return [];
  }
}

function ended(
  { attempt, why }: WorkloadStep & { readonly type: "update-rollout" },
  before: RolloutAttempt | undefined,
): RolloutEvent {
  if (attempt.state === before?.state) return normal("RolloutProgress", why);
  const revision = `revision ${attempt.revision}`;
  switch (attempt.state) {
    case AttemptState.SUCCEEDED:
      return normal("RolloutSucceeded", `${revision}: ${why}`);
    case AttemptState.ROLLING_BACK:
      return warning("RollbackStarted", `${revision} goes ${why}`);
    case AttemptState.ROLLED_BACK:
      return warning("RolledBack", `${revision} is ${why}`);
    case AttemptState.FAILED:
      return warning("RolloutFailed", `${revision}: ${why}`);
    default:
      return normal("RolloutProgress", why);
  }
}

/** Returns one event for each reason of stops, because an event for each pod of a large workload would hide all others. */
function stops(steps: readonly WorkloadStep[]): RolloutEvent[] {
  const byWhy = new Map<string, string[]>();
  for (const step of steps) {
    if (step.type !== "stop-pod") continue;
    byWhy.set(step.why, [...(byWhy.get(step.why) ?? []), step.pod.record.name]);
  }
  return [...byWhy].map(([why, names]) => {
    const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : "";
    const list = names.slice(0, MAX_NAMED).join(", ");
    return normal("StoppedPods", `${podsText(names.length)} to stop (${list}${more}): ${why}`);
  });
}

function podsText(count: number): string {
  return count === 1 ? "1 pod" : `${count} pods`;
}

function normal(reason: string, message: string): RolloutEvent {
  return { type: "Normal", reason, message };
}

function warning(reason: string, message: string): RolloutEvent {
  return { type: "Warning", reason, message };
}
