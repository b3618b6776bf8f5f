import { addressGroup } from "../address-group.ts";

/** Limits of `HandshakeGate`; see `DEFAULT_TLS_LIMITS` for the reasons of the numbers. */
export interface HandshakeLimits {
  readonly maxHandshakes: number;
  readonly maxHandshakesPerAddress: number;
  readonly maxWaiting: number;
  readonly maxWaitingPerAddress: number;
}

interface Waiting<T> {
  readonly item: T;
  readonly address: string;
}

/**
 * Decides which accepted connections may start their TLS handshake. Pure bookkeeping: the caller starts, times and ends them.
 * First come, first served, but one address never gets all places, so a peer that opens connections and stays silent
 * can't keep the others out.
 */
export class HandshakeGate<T> {
  readonly #limits: HandshakeLimits;
  readonly #running = new Map<T, string>();
  readonly #perAddress = new Map<string, number>();
  readonly #waitingOf = new Map<string, number>();
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

  /** Queues a connection; false when the queue, or the address' share of it, is full and the connection must be dropped. */
  add(item: T, remoteAddress: string): boolean {
    if (this.#waiting.length >= this.#limits.maxWaiting) return false;
    const address = addressGroup(remoteAddress);
    if ((this.#waitingOf.get(address) ?? 0) >= this.#limits.maxWaitingPerAddress) return false;
    this.#waiting.push({ item, address });
    count(this.#waitingOf, address, 1);
    return true;
  }

  /**
   * Takes the connections that may start now. Each holds a place until `remove`. `mayStart` is asked last, for each connection
   * that there is a place for.
   */
  next(mayStart: (address: string) => boolean = () => true): readonly T[] {
    if (this.#running.size >= this.#limits.maxHandshakes) return [];
    const started: T[] = [];
    const kept: Waiting<T>[] = [];
    for (const entry of this.#waiting) {
      const ofAddress = this.#perAddress.get(entry.address) ?? 0;
      const free = this.#running.size < this.#limits.maxHandshakes;
      if (!free || ofAddress >= this.#limits.maxHandshakesPerAddress || !mayStart(entry.address)) {
        kept.push(entry);
        continue;
      }
      this.#running.set(entry.item, entry.address);
      count(this.#perAddress, entry.address, 1);
      count(this.#waitingOf, entry.address, -1);
      started.push(entry.item);
    }
    if (started.length > 0) this.#waiting = kept;
    return started;
  }

  /** Returns the item's place, or removes it from the queue. Has no effect the second time. */
  remove(item: T): void {
    const address = this.#running.get(item);
    if (address === undefined) {
      const index = this.#waiting.findIndex((entry) => entry.item === item);
      const [left] = index >= 0 ? this.#waiting.splice(index, 1) : [];
      if (left !== undefined) count(this.#waitingOf, left.address, -1);
      return;
    }
    this.#running.delete(item);
    count(this.#perAddress, address, -1);
  }
}

function count(counts: Map<string, number>, address: string, change: 1 | -1): void {
  const now = (counts.get(address) ?? 0) + change;
  if (now <= 0) counts.delete(address);
  else counts.set(address, now);
}
