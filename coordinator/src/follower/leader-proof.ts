import type { ReportResponse } from "@forage/proto/forage/coordinator/v1/coordinator";

/** Records whether another coordinator has decided while it led. The store is then the one that the nodes know. */
export class LeaderProof {
  #holds = false;

  get holds(): boolean {
    return this.#holds;
  }

  /** Takes a leader's answer to a report. */
  readonly observe = ({ decides }: Pick<ReportResponse, "decides">): void => {
    this.#holds ||= decides;
  };
}
