export interface SharesOptions {
  /** Places of all workspaces together. */
  readonly places: number;
  readonly placesPerWorkspace: number;
}

/**
 * Shares places between workspaces. A workspace gets another place only while it has fewer than are free. So a single workspace can take half of all places, each further one half of the rest, and a place always remains for the next workspace.
 */
export class FairShares {
  readonly #options: SharesOptions;
  readonly #taken = new Map<string, number>();
  #total = 0;

  constructor(options: SharesOptions) {
    this.#options = options;
  }

  /** Takes a place. Returns how to give it back, once or more often; undefined: the workspace has its share. */
  take(instanceId: string): (() => void) | undefined {
    const { places, placesPerWorkspace } = this.#options;
    const taken = this.#taken.get(instanceId) ?? 0;
    if (taken >= placesPerWorkspace || taken >= places - this.#total) return undefined;
    this.#taken.set(instanceId, taken + 1);
    this.#total += 1;
    let held = true;
    return () => {
      if (held) this.#giveBack(instanceId);
      held = false;
    };
  }

  #giveBack(instanceId: string): void {
    const left = (this.#taken.get(instanceId) ?? 0) - 1;
    if (left > 0) this.#taken.set(instanceId, left);
    else this.#taken.delete(instanceId);
    this.#total -= 1;
  }
}
