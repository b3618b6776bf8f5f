import type { ResourceRecord } from "@forage/proto/forage/store/v1/store";
import type { CronJob } from "../../model/cron-job.ts";
import { type Schedule, scheduleOf } from "./schedule.ts";

/**
 * Holds the parsed schedules of cron jobs. A cron job is evaluated at least every 30 s, and without a due run parsing its
 * schedule and finding the due times around now take most of an evaluation.
 */
export class KnownSchedules {
  readonly #known = new WeakMap<ResourceRecord, Schedule>();

  /** Returns the schedule of the cron job in the record, which must not be changed afterwards. */
  of(record: ResourceRecord, { schedule, timeZone }: CronJob): Schedule {
    const known = this.#known.get(record) ?? remembering(scheduleOf(schedule, timeZone));
    this.#known.set(record, known);
    return known;
  }
}

/** Returns the schedule with a memory of the due times around the time for which `last` was called. */
export function remembering(schedule: Schedule): Schedule {
  let around = { lastMs: Number.NaN, nextMs: Number.NaN };
  const isAround = (atMs: number): boolean => around.lastMs <= atMs && atMs < around.nextMs;
  return {
    next: (afterMs) => (isAround(afterMs) ? around.nextMs : schedule.next(afterMs)),
    last: (untilMs) => {
      if (isAround(untilMs)) return around.lastMs;
      const lastMs = schedule.last(untilMs);
      const nextMs = schedule.next(untilMs);
      if (lastMs !== undefined && nextMs !== undefined) around = { lastMs, nextMs };
      return lastMs;
    },
  };
}
