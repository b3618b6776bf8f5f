import {
  AttemptState,
  type KeptPodRecord,
  type RevisionRecord,
  type RolloutAttempt,
} from "@forage/proto/forage/store/v1/store";
import type { Workload } from "../../model/workload.ts";
import type { PodEntry } from "../../state/entries.ts";
import type { StepDescription } from "../step-sink.ts";

/** A step for one workload. A dry run prints the same objects. */
export type WorkloadStep =
  /**
   * Begins a rollout attempt, of a new revision or the current one, because the workload was applied or its template
   * changed.
   */
  | {
      readonly type: "start-rollout";
      readonly attempt: RolloutAttempt;
      readonly revision: RevisionRecord;
      /**
       * Numbers of the revisions to remove: those beyond the limit of the history, and the one that this revision replaces.
       */
      readonly forget: readonly number[];
      readonly why: string;
    }
  /** Records that the rollout attempt progressed or ended. Undefined `good` leaves the revision as it is. */
  | {
      readonly type: "update-rollout";
      readonly attempt: RolloutAttempt;
      /** The revision, if it has succeeded. */
      readonly good: RevisionRecord | undefined;
      readonly why: string;
    }
  | {
      readonly type: "create-pods";
      readonly count: number;
      readonly why: string;
      /** The workload to create the pods from: the effective revision, or the good one before it. */
      readonly of: Workload;
    }
  | {
      readonly type: "stop-pod";
      readonly pod: PodEntry;
      readonly why: string;
      /** Set if the pod failed in this rollout attempt: its status and logs are kept for a while. */
      readonly keep?: Pick<KeptPodRecord, "attemptStartedAt">;
    }
  | { readonly type: "relabel-pod"; readonly pod: PodEntry }
  /** Removes the record of a pod that never was on a node, or whose node has removed it. */
  | { readonly type: "forget-pod"; readonly pod: PodEntry; readonly why: string }
  /** Deletes the records of a deleted resource after its last pod is gone. */
  | { readonly type: "forget-resource" };

const STATES: Readonly<Record<AttemptState, string>> = {
  [AttemptState.UNSPECIFIED]: "unknown",
  [AttemptState.PROGRESSING]: "progressing",
  [AttemptState.SUCCEEDED]: "succeeded",
  [AttemptState.ROLLING_BACK]: "rolling back",
  [AttemptState.ROLLED_BACK]: "rolled back",
  [AttemptState.FAILED]: "failed",
  [AttemptState.UNRECOGNIZED]: "unknown",
};

/** Describes a step for logs and for people. */
export function describeStep(step: WorkloadStep): StepDescription {
  switch (step.type) {
    case "start-rollout":
      return { step: step.type, revision: step.revision.number, why: step.why };
    case "update-rollout":
      return { step: step.type, state: STATES[step.attempt.state], why: step.why };
    case "create-pods":
      return { step: step.type, count: step.count, why: step.why };
    case "stop-pod":
    case "forget-pod":
      return { step: step.type, pod: step.pod.record.name, why: step.why };
    case "relabel-pod":
      return { step: step.type, pod: step.pod.record.name };
    case "forget-resource":
      return { step: step.type };
    default:
      return step satisfies never;
  }
}
