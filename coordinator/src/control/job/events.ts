import type { EventInput } from "../../model/event.ts";
import type { Job } from "../../model/job.ts";
import type { JobStep } from "./plan.ts";

/** Returns the event of a step, if it has one. */
export function eventOf(step: JobStep, { namespace, name }: Job): EventInput | undefined {
  const about = { namespace, kind: "job", name, workload: `${namespace}/job/${name}` };
  if (step.type === "remove-job")
    return { ...about, type: "Normal", reason: "JobExpired", message: step.why };
  if (step.type !== "write-status") return undefined;
  switch (step.status.condition) {
    case "Complete":
      return { ...about, type: "Normal", reason: "JobCompleted", message: step.status.message };
    case "Failed":
      return { ...about, type: "Warning", reason: "JobFailed", message: step.status.message };
    default:
      return { ...about, type: "Normal", reason: "JobStarted", message: "its pods are created" };
  }
}
