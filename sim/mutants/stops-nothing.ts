import type { PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import { Assignments as RealAssignments } from "../../coordinator/src/link/assignments.ts";
import type { PodEntry } from "../../coordinator/src/state/entries.ts";

export * from "../../coordinator/src/link/assignments.ts";

/** Never sends nodes the order to stop a pod. */
export class Assignments extends RealAssignments {
  override of(pod: PodEntry): PodAssignment {
    return { ...super.of(pod), stopping: false };
  }
}
