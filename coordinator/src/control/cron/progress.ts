import { cronJobOf } from "../../model/cron-job.ts";
import type { ResourceEntry } from "../../state/entries.ts";
import { scheduleFor } from "./cron-input.ts";

/** Returns the message that lists show for a cron job. Undefined for other resources. */
export function cronMessage({ record }: ResourceEntry, nowMs: number): string | undefined {
  const cron = cronJobOf(record);
  if (cron === undefined) return undefined;
  if (cron.suspended) return "suspended";
  const nextMs = scheduleFor(cron).next(nowMs);
  return nextMs === undefined ? "never due again" : `next run at ${new Date(nextMs).toISOString()}`;
}
