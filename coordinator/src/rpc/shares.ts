import { CoordinatorError } from "../errors.ts";

export interface SharesOptions {
  /** Names what the places are for in errors, such as "plans and trials that wait for their turn". */
  readonly what: string;
  readonly total: number;
  /** The limit of each user. */
  readonly ofUser: number;
  /**
   * Whether a user gets another place only if more places are free than it holds already. So the first user can take half of all
   * places, each further user half of the rest, and a place always remains for the next one. Default: false.
   */
  readonly isFair?: boolean;
}

/** Gives out a limited number of places, in all and to each user, such as a caller or a workspace. */
export class Shares {
  readonly #options: SharesOptions;
  readonly #byUser = new Map<string, number>();
  #taken = 0;

  constructor(options: SharesOptions) {
    this.#options = options;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Takes a place. Returns how to give it back, which may be called twice. Throws RESOURCE_EXHAUSTED. */
  take(user: string): () => void {
    const giveBack = this.tryTake(user);
    if (giveBack !== undefined) return giveBack;
    const { what, total, ofUser } = this.#options;
    const whose = (this.#byUser.get(user) ?? 0) >= ofUser ? `${ofUser} of this token` : `${total}`;
    throw new CoordinatorError(
      "RESOURCE_EXHAUSTED",
      `${what}: ${whose}, which is the limit; try again when one has ended`,
    );
  }

  /** Takes a place, as `take` does. Undefined: there is none for the user. */
  tryTake(user: string): (() => void) | undefined {
    const { total, ofUser, isFair = false } = this.#options;
    const own = this.#byUser.get(user) ?? 0;
    const free = total - this.#taken;
    if (own >= ofUser || free <= (isFair ? own : 0)) return undefined;
    this.#taken += 1;
    this.#byUser.set(user, own + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#taken -= 1;
      const left = (this.#byUser.get(user) ?? 1) - 1;
      if (left === 0) this.#byUser.delete(user);
      else this.#byUser.set(user, left);
    };
  }
}
