/** Limits of `AnonymousShare`; see `DEFAULT_TLS_LIMITS` for the reasons of the numbers. */
export interface AnonymousLimits {
  readonly maxAnonymous: number;
  readonly maxAnonymousPerAddress: number;
}

/**
 * Decides which connections without credentials may stay. A newcomer is always let in, and replaces the oldest one of its own
 * address, or of the address with most: a client with credentials needs a moment to show them, so that a peer which keeps
 * connections open can't lock others out, not even those behind the same address.
 */
export class AnonymousShare<T> {
  readonly #limits: AnonymousLimits;
  /** Oldest first. */
  readonly #byAddress = new Map<string, Set<T>>();
  #size = 0;

  constructor(limits: AnonymousLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#size;
  }

  /** The number of addresses with connections. */
  get addresses(): number {
    return this.#byAddress.size;
  }

  /** Enters a connection; returns the one that it replaces, which no longer counts and must be closed. */
  add(item: T, address: string): T | undefined {
    const ofAddress = this.#byAddress.get(address) ?? new Set();
    this.#byAddress.set(address, ofAddress);
    const crowded =
      ofAddress.size >= this.#limits.maxAnonymousPerAddress
        ? address
        : this.#size >= this.#limits.maxAnonymous
          ? this.#mostCrowded()
          : undefined;
    ofAddress.add(item);
    this.#size += 1;
    return crowded === undefined ? undefined : this.#removeOldest(crowded);
  }

  /** Reports whether it was there. */
  remove(item: T, address: string): boolean {
    const ofAddress = this.#byAddress.get(address);
    if (ofAddress?.delete(item) !== true) return false;
    if (ofAddress.size === 0) this.#byAddress.delete(address);
    this.#size -= 1;
    return true;
  }

  #mostCrowded(): string | undefined {
    let [most, count]: [string | undefined, number] = [undefined, 0];
    for (const [address, items] of this.#byAddress)
      if (items.size > count) [most, count] = [address, items.size];
    return most;
  }

  #removeOldest(address: string): T | undefined {
    for (const oldest of this.#byAddress.get(address) ?? []) {
      this.remove(oldest, address);
      return oldest;
    }
    return undefined;
  }
}
