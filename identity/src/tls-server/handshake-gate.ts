import { addressGroup } from "../address-group.ts";

/** The limits of `HandshakeGate`. `DEFAULT_TLS_LIMITS` explains the numbers. */
export interface HandshakeLimits {
  readonly maxHandshakes: number;
  readonly maxHandshakesPerAddress: number;
  readonly maxWaiting: number;
  readonly maxWaitingPerAddress: number;
}

/**
 * Decides which accepted connections may start their TLS handshake. It only keeps count: the caller starts, times and
 * ends handshakes. Addresses take turns, each with its connections in order of arrival, and one address never gets all
 * places. A peer that opens many connections, or leaves them silent, can't block the others.
 */
export class HandshakeGate<T> {
  readonly #limits: HandshakeLimits;
  readonly #running = new Map<T, string>();
  readonly #perAddress = new Map<string, number>();
  readonly #waiting = new Map<T, string>();
  /** The waiting connections by address. Addresses are in the order of their turns. */
  readonly #queues = new Map<string, Set<T>>();

  constructor(limits: HandshakeLimits) {
    this.#limits = limits;
  }

  get running(): number {
    return this.#running.size;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Queues a connection. Returns false if the queue, or the address's share of it, is full; the caller must then drop
   * the connection. `maxWaiting` lowers the share for this address.
   */
  add(item: T, remoteAddress: string, maxWaiting = Number.POSITIVE_INFINITY): boolean {
    if (this.#waiting.size >= this.#limits.maxWaiting) return false;
    const address = addressGroup(remoteAddress);
    const queue = this.#queues.get(address) ?? new Set<T>();
    if (queue.size >= Math.min(maxWaiting, this.#limits.maxWaitingPerAddress)) return false;
    this.#queues.set(address, queue.add(item));
    this.#waiting.set(item, address);
    return true;
  }

  /**
   * Returns the connections that may start now. Each occupies a place until `remove`. `mayStart` is called only for
   * connections for which a place is free.
   */
  next(mayStart: (address: string) => boolean = () => true): readonly T[] {
    const started: T[] = [];
    // An address that is deleted and set again is visited again, after the others.
    for (const [address, queue] of this.#queues) {
      if (this.#running.size >= this.#limits.maxHandshakes) break;
      const running = this.#perAddress.get(address) ?? 0;
      if (running >= this.#limits.maxHandshakesPerAddress || !mayStart(address)) continue;
      for (const item of queue) {
        this.#leave(item, address, queue);
        if (queue.size > 0) {
          this.#queues.delete(address);
          this.#queues.set(address, queue);
        }
        this.#running.set(item, address);
        this.#perAddress.set(address, running + 1);
        started.push(item);
        break;
      }
    }
    return started;
  }

  /** Frees the connection's place, or removes it from the queue. A second call has no effect. */
  remove(item: T): void {
    const waitedFor = this.#waiting.get(item);
    if (waitedFor !== undefined) this.#leave(item, waitedFor, this.#queues.get(waitedFor));
    const address = this.#running.get(item);
    if (address === undefined) return;
    this.#running.delete(item);
    const left = (this.#perAddress.get(address) ?? 1) - 1;
    if (left === 0) this.#perAddress.delete(address);
    else this.#perAddress.set(address, left);
  }

  #leave(item: T, address: string, queue: Set<T> | undefined): void {
    this.#waiting.delete(item);
    queue?.delete(item);
    if (queue?.size === 0) this.#queues.delete(address);
  }
}
