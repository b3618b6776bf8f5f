import { CoordinatorError } from "../errors.ts";

export interface CallerSharesOptions {
  /** Names what the places are for in errors, such as "plans and trials that wait for their turn". */
  readonly what: string;
  readonly total: number;
  /** The limit of each caller. It leaves room for others. */
  readonly ofCaller: number;
}

/** Gives out a limited number of places, in all and to each caller, so that no caller can take all of them. */
export class CallerShares {
  readonly #options: CallerSharesOptions;
  readonly #byCaller = new Map<string, number>();
  #taken = 0;

  constructor(options: CallerSharesOptions) {
    this.#options = options;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Takes a place. Returns how to give it back, which may be called twice. Throws RESOURCE_EXHAUSTED. */
  take(caller: string): () => void {
    const { what, total, ofCaller } = this.#options;
    const own = this.#byCaller.get(caller) ?? 0;
    if (own >= ofCaller || this.#taken >= total) {
      const whose = own >= ofCaller ? `${ofCaller} of this token` : `${total}`;
      throw new CoordinatorError(
        "RESOURCE_EXHAUSTED",
        `${what}: ${whose}, which is the limit; try again when one has ended`,
      );
    }
    this.#taken += 1;
    this.#byCaller.set(caller, own + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#taken -= 1;
      const left = (this.#byCaller.get(caller) ?? 1) - 1;
      if (left === 0) this.#byCaller.delete(caller);
      else this.#byCaller.set(caller, left);
    };
  }
}
