import { type Disruption, disruptionOf, type FleetHealth } from "./disruption.ts";

export type MassLossPhase =
  | { readonly type: "none" }
  /** Most nodes are lost. */
  | { readonly type: "disrupted"; readonly disruption: Disruption }
  /** Nodes are still reconnecting: after a mass loss, or because the coordinator has started or was blocked. */
  | { readonly type: "recovering"; readonly untilMs: number; readonly after: "mass-loss" | "absence" };

export interface MassLossOptions {
  /** The time in milliseconds that nodes have to return. It is longer than an agent needs to reconnect. */
  readonly recoveryMs: number;
  /** Called when a mass loss begins and when it is over, with the fleet at that moment. */
  readonly onChange?: (active: boolean, fleet: FleetHealth) => void;
}

/**
 * Detects mass losses: so many nodes are lost at once that the coordinator's own network is the likelier cause. During a
 * mass loss, and until the nodes have had time to return, endpoints stay as last known and pods of lost nodes are not
 * replaced. All times are monotonic.
 */
export class MassLoss {
  readonly #options: MassLossOptions;
  #phase: MassLossPhase = { type: "none" };
  #fleet: FleetHealth = { nodes: 0, lost: 0 };
  #fewestLost = 0;
  #count = 0;
  #overMs: number | undefined;

  constructor(options: MassLossOptions) {
    this.#options = options;
  }

  get fleet(): FleetHealth {
    return this.#fleet;
  }

  /** The number of mass losses that have begun. */
  get count(): number {
    return this.#count;
  }

  /** The time at which the last mass loss ended. Tolerations of nodes that are still lost count from then. */
  get overMs(): number | undefined {
    return this.#overMs;
  }

  /** Sets the number of lost nodes. */
  update(fleet: FleetHealth, nowMs: number): void {
    const wasActive = this.isActive(nowMs);
    this.#fleet = fleet;
    const disruption = disruptionOf(fleet);
    if (disruption !== "none") {
      this.#phase = { type: "disrupted", disruption };
      if (wasActive) return;
      this.#count++;
      this.#options.onChange?.(true, fleet);
      return;
    }
    if (this.#phase.type === "none") return;
    if (this.#phase.type === "disrupted") this.#recover(nowMs, "mass-loss");
    // Each returning node restarts the recovery time. A flapping node does so only once.
    else if (this.#phase.type === "recovering" && fleet.lost < this.#fewestLost)
      this.#recover(nowMs, this.#phase.after);
    if (fleet.lost === 0 && this.isActive(nowMs)) this.#end(nowMs);
  }

  /** Records that the coordinator could not receive heartbeats for a while. */
  wasAbsent(nowMs: number): void {
    const phase = this.phase(nowMs);
    if (phase.type !== "disrupted")
      this.#recover(nowMs, phase.type === "recovering" ? phase.after : "absence");
  }

  phase(nowMs: number): MassLossPhase {
    const phase = this.#phase;
    if (phase.type !== "recovering" || nowMs < phase.untilMs) return phase;
    if (phase.after === "mass-loss") this.#end(phase.untilMs);
    else this.#phase = { type: "none" };
    return this.#phase;
  }

  /** Reports whether there is a mass loss, so that endpoints on lost nodes stay. */
  isActive(nowMs: number): boolean {
    const phase = this.phase(nowMs);
    return phase.type === "disrupted" || (phase.type === "recovering" && phase.after === "mass-loss");
  }

  /**
   * Returns the milliseconds for which no pod of a lost node may be replaced. 0 while most nodes are lost, because
   * `EvictionPace` decides then.
   */
  recoveringMs(nowMs: number): number {
    const phase = this.phase(nowMs);
    return phase.type === "recovering" ? phase.untilMs - nowMs : 0;
  }

  #end(nowMs: number): void {
    this.#phase = { type: "none" };
    this.#overMs = nowMs;
    this.#options.onChange?.(false, this.#fleet);
  }

  #recover(nowMs: number, after: "mass-loss" | "absence"): void {
    this.#fewestLost = this.#fleet.lost;
    this.#phase = { type: "recovering", untilMs: nowMs + this.#options.recoveryMs, after };
  }
}
