import {
  type ActingTimeOptions,
  ActingTime as Real,
  type TimeReading,
} from "../../coordinator/src/acting-time/acting-time.ts";

/** Compares stored times with the wall clock. */
export class ActingTime extends Real {
  override readonly now: () => TimeReading;

  constructor(options: ActingTimeOptions) {
    super(options);
    const upSinceMs = options.clock.nowMs();
    this.now = () => ({ nowMs: options.clock.nowMs(), upSinceMs, since: (atMs) => atMs });
  }
}
