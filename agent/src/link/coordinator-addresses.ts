import type { CoordinatorAddress } from "./client.ts";

/** The addresses of the cluster's coordinators, of which the agent uses one at a time. */
export class CoordinatorAddresses {
  readonly #all: readonly CoordinatorAddress[];
  #at: number;

  constructor(all: readonly CoordinatorAddress[], at: number) {
    this.#all = all;
    this.#at = at;
  }

  /** Begins with a random one, which spreads the hosts. `random` returns a number in [0, 1). */
  static of(
    settings: {
      readonly coordinator: CoordinatorAddress;
      readonly coordinators: readonly CoordinatorAddress[];
    },
    random: () => number,
  ): CoordinatorAddresses {
    const all = [settings.coordinator, ...settings.coordinators];
    return new CoordinatorAddresses(all, all.length === 1 ? 0 : Math.floor(random() * all.length));
  }

  get current(): CoordinatorAddress {
    const found = this.#all[this.#at];
    if (found === undefined) throw new Error("there is no address");
    return found;
  }

  /** Uses the next one from now on, because this one could not be reached or has ended the connection. */
  moveOn(): void {
    this.#at = (this.#at + 1) % this.#all.length;
  }

  /** Returns the options with an `address` that is the current one at each read. */
  with<Options extends object>(options: Options): Options & { readonly address: CoordinatorAddress } {
    const current = (): CoordinatorAddress => this.current;
    return {
      ...options,
      get address() {
        return current();
      },
    };
  }
}
