import type { AssignmentDelta, AssignmentSnapshot } from "@forage/proto/forage/agent/v1/agent";
import { LinkError } from "./link-error.ts";

export type AssignmentMessage =
  | { readonly $case: "snapshot"; readonly value: AssignmentSnapshot }
  | { readonly $case: "delta"; readonly value: AssignmentDelta };

// At 4 MiB a message, far more than any host's pods are.
const PARTS_MAX = 1_000;

/** Joins the parts of messages that are too large for one. Holds the parts of one connection, from its beginning. */
export class PartGatherer {
  #begun: AssignmentMessage | undefined;
  #parts = 0;

  /**
   * The whole once its last part is there, else undefined: nothing of it counts before.
   * @throws LinkError PROTOCOL if the parts don't belong together.
   */
  add(part: AssignmentMessage): AssignmentMessage | undefined {
    this.#parts += 1;
    if (this.#parts > PARTS_MAX)
      throw new LinkError("PROTOCOL", `an assignment of more than ${PARTS_MAX} parts`);
    const whole = this.#begun === undefined ? part : joined(this.#begun, part);
    if (part.value.more) {
      this.#begun = whole;
      return undefined;
    }
    this.#begun = undefined;
    this.#parts = 0;
    return whole;
  }
}

function joined(begun: AssignmentMessage, part: AssignmentMessage): AssignmentMessage {
  if (part.value.revision === begun.value.revision) {
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
  }
  throw new LinkError("PROTOCOL", "an assignment came in parts, and something else between them");
}
