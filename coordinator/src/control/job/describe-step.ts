import type { StepDescription } from "../step-sink.ts";
import type { JobStep } from "./plan.ts";

/** Returns the description of a step for logs. */
export function describeJobStep(step: JobStep): StepDescription {
  switch (step.type) {
    case "count-pods":
      return { step: step.type, count: step.pods.length };
    case "write-status":
      return { step: step.type, condition: step.status.condition, why: step.why };
    case "create-pod":
      return { step: step.type, index: step.index, why: step.why };
    case "stop-pod":
    case "forget-pod":
      return { step: step.type, pod: step.pod.record.name, why: step.why };
    case "relabel-pod":
      return { step: step.type, pod: step.pod.record.name };
    case "remove-job":
      return { step: step.type, why: step.why };
    case "forget-resource":
      return { step: step.type };
    default:
      return step satisfies never;
  }
}
