import type { StepDescription } from "../step-sink.ts";
import type { CronStep } from "./plan.ts";

/** Returns the description of a step for logs. */
export function describeCronStep(step: CronStep): StepDescription {
  switch (step.type) {
    case "start-run":
      return { step: step.type, run: step.name, why: step.why };
    case "skip-run":
    case "miss-runs":
    case "write-status":
      return { step: step.type, why: step.why };
    case "remove-run":
      return { step: step.type, run: step.run.entry.record.name, why: step.why };
    case "forget-resource":
      return { step: step.type };
    default:
      return step satisfies never;
  }
}
