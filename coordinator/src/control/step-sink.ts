import type { Log } from "@forage/common/log";

/** A reconciler's description of a step. */
export interface StepDescription {
  /** `create-pods`, `stop-pod`, … */
  readonly step: string;
  readonly [field: string]: unknown;
}

/** A step that is about to be carried out. */
export interface TakenStep extends StepDescription {
  /** `namespace/kind/name` of the workload it changes. */
  readonly workload: string;
}

/** Receives each step before it is carried out: the log of a coordinator that serves, the list of a plan. */
export interface StepSink {
  take(step: TakenStep): void;
}

/** Writes each step to the log. */
export function loggedSteps(log: Log): StepSink {
  return { take: (step) => log.info({ event: "workload-step", ...step }) };
}
