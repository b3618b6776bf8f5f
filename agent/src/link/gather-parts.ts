import type { AssignmentDelta, AssignmentSnapshot } from "@forage/proto/forage/agent/v1/agent";
import { PartGatherer } from "../feed/part-gatherer.ts";

export type AssignmentMessage =
  | { readonly $case: "snapshot"; readonly value: AssignmentSnapshot }
  | { readonly $case: "delta"; readonly value: AssignmentDelta };

/** Returns a gatherer that joins the parts of one connection's assignments. */
export function assignmentParts(): PartGatherer<AssignmentMessage> {
  return new PartGatherer({ noun: "an assignment", hasMore: ({ value }) => value.more, join });
}

function join(begun: AssignmentMessage, part: AssignmentMessage): AssignmentMessage | undefined {
  if (part.value.revision !== begun.value.revision) return undefined;
  const claimRemovals = [...begun.value.claimRemovals, ...part.value.claimRemovals];
  if (begun.$case === "snapshot" && part.$case === "snapshot") {
    const pods = [...begun.value.pods, ...part.value.pods];
    return { $case: "snapshot", value: { ...part.value, pods, claimRemovals } };
  }
  if (begun.$case === "delta" && part.$case === "delta") {
    const upserts = [...begun.value.upserts, ...part.value.upserts];
    const removals = [...begun.value.removals, ...part.value.removals];
    return { $case: "delta", value: { ...part.value, upserts, removals, claimRemovals } };
  }
  return undefined;
}
