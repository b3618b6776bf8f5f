import { ADDRESSES_MAX, type CoordinatorAddress, parseAddress, textOf } from "./coordinator-address.ts";
import type { KnownCoordinators } from "./known-coordinators.ts";

export interface CoordinatorAddressesOptions {
  /** At least one. They are kept, whatever the coordinators say. */
  readonly configured: readonly CoordinatorAddress[];
  /** Keeps what was learnt. Default: it is forgotten at the end of the process. */
  readonly known?: Pick<KnownCoordinators, "learnt" | "save">;
  /** A source of random numbers in [0, 1). */
  readonly random: () => number;
}

/**
 * The addresses of the cluster's coordinators, of which the agent uses one at a time. Coordinators report them. That makes no
 * address trusted: whoever answers there must have a certificate of the cluster's authority.
 */
export class CoordinatorAddresses {
  readonly #options: CoordinatorAddressesOptions;
  #all: readonly CoordinatorAddress[];
  #current: CoordinatorAddress;

  /** Begins with a random one, which spreads the hosts. */
  constructor(options: CoordinatorAddressesOptions) {
    this.#options = options;
    this.#all = together(options.configured, options.known?.learnt ?? []);
    const [first] = this.#all;
    if (first === undefined) throw new Error("there is no address");
    this.#current = this.#any(this.#all) ?? first;
  }

  get current(): CoordinatorAddress {
    return this.#current;
  }

  get all(): readonly CoordinatorAddress[] {
    return this.#all;
  }

  /** Takes in the addresses that a coordinator has reported, as HOST:PORT. Returns whether there are new ones among them. */
  learn(reported: readonly string[]): boolean {
    const learnt = reported.slice(0, ADDRESSES_MAX).flatMap((text) => parseAddress(text) ?? []);
    if (learnt.length === 0) return false;
    const before = new Set(this.#all.map(textOf));
    const all = together(this.#options.configured, learnt);
    if (all.length === before.size && all.every((it) => before.has(textOf(it)))) return false;
    this.#all = all;
    this.#options.known?.save(learnt);
    return all.some((it) => !before.has(textOf(it)));
  }

  /** Uses another one from now on, because this one could not be reached or has ended the connection. */
  moveOn(): void {
    const others = this.#all.filter((it) => textOf(it) !== textOf(this.#current));
    this.#current = this.#any(others) ?? this.#current;
  }

  /** Draws one of all again. Returns a function that takes this back; undefined: it has drawn the present one. */
  redraw(): (() => void) | undefined {
    const before = this.#current;
    this.#current = this.#any(this.#all) ?? before;
    if (textOf(before) === textOf(this.#current)) return undefined;
    return () => {
      this.#current = before;
    };
  }

  /** Uses the options with an `address` that is the current one at each read. */
  with<Options extends object>(options: Options): Options & { readonly address: CoordinatorAddress } {
    const current = (): CoordinatorAddress => this.current;
    return {
      ...options,
      get address() {
        return current();
      },
    };
  }

  #any(addresses: readonly CoordinatorAddress[]): CoordinatorAddress | undefined {
    return addresses[Math.floor(this.#options.random() * addresses.length)];
  }
}

/** Returns the configured ones first, each address once. */
function together(
  configured: readonly CoordinatorAddress[],
  learnt: readonly CoordinatorAddress[],
): readonly CoordinatorAddress[] {
  const byText = new Map([...configured, ...learnt].map((it) => [textOf(it), it]));
  return [...byText.values()].slice(0, ADDRESSES_MAX);
}
