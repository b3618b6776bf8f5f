import { cronJobOf } from "../../model/cron-job.ts";
import type { ResourceEntry } from "../../state/entries.ts";
import { scheduleFor } from "./cron-input.ts";

/** What there is to say of a cron job that was stored; undefined when the resource isn't one. */
export function cronMessage({ record }: ResourceEntry, nowMs: number): string | undefined {
  const cron = cronJobOf(record);
  if (cron === undefined) return undefined;
  if (cron.suspended) return "suspended";
  const nextMs = scheduleFor(cron).next(nowMs);
  return nextMs === undefined ? "never due again" : `next run at ${new Date(nextMs).toISOString()}`;
}
