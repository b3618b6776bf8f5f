import type { Config } from "../config.ts";
import type { EventLimits } from "./limits.ts";

/** Returns the configured limits of the event log. */
export function eventLimits({ events }: Pick<Config, "events">): EventLimits {
  return { maxCount: events.maxCount, maxBytes: events.maxMegabytes * 1024 * 1024 };
}
