import type { Log } from "@forage/common/log";

/** The description of a reconciler's step. */
export interface StepDescription {
  /** The kind of step, such as `create-pods` or `stop-pod`. */
  readonly step: string;
  readonly [field: string]: unknown;
}

/** A step that is about to be executed. */
export interface ReportedStep extends StepDescription {
  /** The key of the workload that the step changes, as `namespace/kind/name`. */
  readonly workload: string;
}

/** Receives each step before it is executed. A serving coordinator logs the steps; a simulated apply collects them. */
export interface StepSink {
  report(step: ReportedStep): void;
}

/** Writes each step to the log. */
export function loggedSteps(log: Log): StepSink {
  return { report: (step) => log.info({ event: "workload-step", ...step }) };
}
