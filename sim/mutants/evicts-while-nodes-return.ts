import { MassLoss as RealMassLoss } from "../../coordinator/src/control/eviction/mass-loss.ts";

export * from "../../coordinator/src/control/eviction/mass-loss.ts";

/** Replaces pods as soon as fewer than most nodes are lost. */
export class MassLoss extends RealMassLoss {
  override get overMs(): undefined {
    return undefined;
  }

  override recoveringMs(): number {
    return 0;
  }
}
