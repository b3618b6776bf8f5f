import type { EventInput } from "../../model/event.ts";
import type { CronStep } from "./plan.ts";

/** Returns the event of a step, if it has one. `key` is the cron job's. */
export function cronEventOf(step: CronStep, key: string): EventInput | undefined {
  const [namespace = "", kind = "", name = ""] = key.split("/");
  const about = { namespace, kind, name, workload: key };
  switch (step.type) {
    case "start-run":
      return { ...about, type: "Normal", reason: "CronRunStarted", message: `${step.name}: ${step.why}` };
    case "skip-run":
      return {
        ...about,
        type: "Warning",
        reason: step.refused ? "CronRunRefused" : "CronRunSkipped",
        message: step.why,
      };
    case "miss-runs":
      return { ...about, type: "Warning", reason: "CronRunMissed", message: step.why };
    case "remove-run": {
      if (!step.replaced) return undefined;
      const message = `${step.run.entry.record.name} is stopped: ${step.why}`;
      return { ...about, type: "Normal", reason: "CronRunReplaced", message };
    }
    case "write-status":
    case "forget-resource":
      return undefined;
    default:
      return step satisfies never;
  }
}
