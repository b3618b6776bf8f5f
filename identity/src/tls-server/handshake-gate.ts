/** Limits of `HandshakeGate`; see `DEFAULT_TLS_LIMITS` for the reasons of the numbers. */
export type HandshakeLimits = {
  readonly maxHandshakes: number;
  readonly maxHandshakesPerAddress: number;
  readonly maxWaiting: number;
};

type Waiting<T> = { readonly item: T; readonly address: string };

/**
 * Decides which accepted connections may start their TLS handshake. Pure bookkeeping: the caller starts, times and ends them.
 * First come, first served, but one address never gets all places, so a peer that opens connections and stays silent
 * can't keep the others out.
 */
export class HandshakeGate<T> {
  readonly #limits: HandshakeLimits;
  readonly #running = new Map<T, string>();
  readonly #perAddress = new Map<string, number>();
  #waiting: Waiting<T>[] = [];

  constructor(limits: HandshakeLimits) {
    this.#limits = limits;
  }

  get running(): number {
    return this.#running.size;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Queues a connection; false when the queue is full and the connection must be dropped. */
  add(item: T, address: string): boolean {
    if (this.#waiting.length >= this.#limits.maxWaiting) return false;
    this.#waiting.push({ item, address: addressGroup(address) });
    return true;
  }

  /** Takes the connections that may start now. Each holds a place until `remove`. */
  next(): readonly T[] {
    if (this.#running.size >= this.#limits.maxHandshakes) return [];
    const started: T[] = [];
    const kept: Waiting<T>[] = [];
    for (const entry of this.#waiting) {
      const ofAddress = this.#perAddress.get(entry.address) ?? 0;
      const free = this.#running.size < this.#limits.maxHandshakes;
      if (!free || ofAddress >= this.#limits.maxHandshakesPerAddress) {
        kept.push(entry);
        continue;
      }
      this.#running.set(entry.item, entry.address);
      this.#perAddress.set(entry.address, ofAddress + 1);
      started.push(entry.item);
    }
    if (started.length > 0) this.#waiting = kept;
    return started;
  }

  /** Gives the place back, or leaves the queue. Harmless when done twice. */
  remove(item: T): void {
    const address = this.#running.get(item);
    if (address === undefined) {
      const index = this.#waiting.findIndex((entry) => entry.item === item);
      if (index >= 0) this.#waiting.splice(index, 1);
      return;
    }
    this.#running.delete(item);
    const left = (this.#perAddress.get(address) ?? 1) - 1;
    if (left === 0) this.#perAddress.delete(address);
    else this.#perAddress.set(address, left);
  }
}

/** One host usually owns a whole IPv6 /64, so its addresses count as one. */
function addressGroup(address: string): string {
  if (!address.includes(":") || address.startsWith("::ffff:")) return address;
  const [head = "", tail] = address.split("::");
  const groups = head.split(":").filter((part) => part !== "");
  if (tail === undefined) return groups.slice(0, 4).join(":");
  const after = tail.split(":").filter((part) => part !== "");
  const zeros = Array.from({ length: Math.max(0, 8 - groups.length - after.length) }, () => "0");
  return [...groups, ...zeros, ...after].slice(0, 4).join(":");
}
