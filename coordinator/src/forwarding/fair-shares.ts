export interface SharesOptions {
  readonly places: number;
  readonly placesPerUser: number;
}

/**
 * Shares places between users, such as workspaces. A user gets another place only if more places are free
 * than it holds already. So the first user can take half of all places, each further user half of the rest, and a place always
 * remains for the next one.
 */
export class FairShares {
  readonly #options: SharesOptions;
  readonly #taken = new Map<string, number>();
  #total = 0;

  constructor(options: SharesOptions) {
    this.#options = options;
  }

  /** Takes a place. Returns how to give it back, once or more often; undefined: the user has its share. */
  take(user: string): (() => void) | undefined {
    const { places, placesPerUser } = this.#options;
    const taken = this.#taken.get(user) ?? 0;
    if (taken >= placesPerUser || taken >= places - this.#total) return undefined;
    this.#taken.set(user, taken + 1);
    this.#total += 1;
    let held = true;
    return () => {
      if (held) this.#giveBack(user);
      held = false;
    };
  }

  #giveBack(user: string): void {
    const left = (this.#taken.get(user) ?? 0) - 1;
    if (left > 0) this.#taken.set(user, left);
    else this.#taken.delete(user);
    this.#total -= 1;
  }
}
