import { ADDRESSES_MAX, type CoordinatorAddress, parseAddress, textOf } from "./coordinator-address.ts";
import type { KnownCoordinators } from "./known-coordinators.ts";

export interface CoordinatorAddressesOptions {
  /** The configured addresses, at least one. Reports of coordinators never remove them. */
  readonly configured: readonly CoordinatorAddress[];
  /** Stores learned addresses. Default: they are lost at the end of the process. */
  readonly known?: Pick<KnownCoordinators, "learnt" | "save">;
  /** A source of random numbers in [0, 1). */
  readonly random: () => number;
}

/**
 * The addresses of the cluster's coordinators, of which the agent uses one at a time. Coordinators report them. A
 * reported address is not trusted by itself: the server there needs a certificate of the cluster's authority.
 */
export class CoordinatorAddresses {
  readonly #options: CoordinatorAddressesOptions;
  #all: readonly CoordinatorAddress[];
  #current: CoordinatorAddress;

  /** Starts with a random address, which distributes the hosts. */
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

  /** Adds the addresses that a coordinator has reported, as HOST:PORT. Returns whether some are new. */
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

  /** Switches to another address, because the current one could not be reached or ended the connection. */
  moveOn(): void {
    const others = this.#all.filter((it) => textOf(it) !== textOf(this.#current));
    this.#current = this.#any(others) ?? this.#current;
  }

  /**
   * Draws a random address from all. Returns a function that undoes the draw, or undefined if it is the current
   * address.
   */
  redraw(): (() => void) | undefined {
    const before = this.#current;
    this.#current = this.#any(this.#all) ?? before;
    if (textOf(before) === textOf(this.#current)) return undefined;
    return () => {
      this.#current = before;
    };
  }

  /** Returns the options with an `address` that is always the current one. */
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

/** Returns the configured addresses first, each address once. */
function together(
  configured: readonly CoordinatorAddress[],
  learnt: readonly CoordinatorAddress[],
): readonly CoordinatorAddress[] {
  const byText = new Map([...configured, ...learnt].map((it) => [textOf(it), it]));
  return [...byText.values()].slice(0, ADDRESSES_MAX);
}
