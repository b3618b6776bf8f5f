/** The limits of `AnonymousShare`. `DEFAULT_TLS_LIMITS` explains the numbers. */
export interface AnonymousLimits {
  readonly maxAnonymous: number;
  readonly maxAnonymousPerAddress: number;
}

/**
 * Decides which connections without credentials may stay open. A new one is always admitted, and replaces the oldest of
 * its own address, or of the address with most connections. Clients with credentials need only a moment to present
 * them, so a peer that keeps connections open can't lock others out, even behind the same address.
 */
export class AnonymousShare<T> {
  readonly #limits: AnonymousLimits;
  /** The connections of each address, oldest first. */
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

  /** Adds a connection. Returns the one that it replaces, which the caller must close. */
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

  /** Removes a connection, and reports whether it was present. */
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
