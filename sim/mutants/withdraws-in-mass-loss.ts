import { MassLoss as RealMassLoss } from "../../coordinator/src/control/eviction/mass-loss.ts";

export * from "../../coordinator/src/control/eviction/mass-loss.ts";

/** Withdraws endpoints of lost nodes, however many are lost at once. */
export class MassLoss extends RealMassLoss {
  override isActive(): boolean {
    return false;
  }
}
