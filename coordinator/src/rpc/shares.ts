import { CoordinatorError } from "../errors.ts";

export interface SharesOptions {
  /**
   * The name of the slots' users in errors, such as "plans and trials that wait for their turn".
   */
  readonly what: string;
  readonly total: number;
  /** The most slots of one user. */
  readonly ofUser: number;
  /**
   * Whether a user gets another slot only if more slots are free than it already has. The first
   * user can then have half of all slots, each further user half of the rest, and one slot always
   * remains for the next user. Default: false.
   */
  readonly isFair?: boolean;
}

/** Limits slots, in total and for each user, such as a caller or a workspace. */
export class Shares {
  readonly #options: SharesOptions;
  readonly #byUser = new Map<string, number>();
  #held = 0;

  constructor(options: SharesOptions) {
    this.#options = options;
  }

  get held(): number {
    return this.#held;
  }

  /**
   * Acquires a slot. Returns a function that releases it; repeated calls have no effect. Throws
   * RESOURCE_EXHAUSTED if the user gets none.
   */
  acquire(user: string): () => void {
    const release = this.tryAcquire(user);
    if (release !== undefined) return release;
    const { what, total, ofUser } = this.#options;
    const whose = (this.#byUser.get(user) ?? 0) >= ofUser ? `${ofUser} of this token` : `${total}`;
    throw new CoordinatorError(
      "RESOURCE_EXHAUSTED",
      `${what}: ${whose}, which is the limit; try again when one has ended`,
    );
  }

  /** Acquires a slot like `acquire`, but returns undefined if the user gets none. */
  tryAcquire(user: string): (() => void) | undefined {
    const { total, ofUser, isFair = false } = this.#options;
    const own = this.#byUser.get(user) ?? 0;
    const free = total - this.#held;
    if (own >= ofUser || free <= (isFair ? own : 0)) return undefined;
    this.#held += 1;
    this.#byUser.set(user, own + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#held -= 1;
      const left = (this.#byUser.get(user) ?? 1) - 1;
      if (left === 0) this.#byUser.delete(user);
      else this.#byUser.set(user, left);
    };
  }
}
