import { addressGroup } from "../address-group.ts";

/**
 * The time for which an address is paced after its last offence. It is long enough to cover an attack that pauses
 * briefly.
 */
const PACED_MS = 60_000;
/**
 * The time between two connections of a paced address. A TLS handshake, and what a new connection may do before it is
 * closed, take 10 ms of CPU, so an address under attack uses at most a tenth of a core, and hosts behind the same
 * address can still connect.
 */
const START_INTERVAL_MS = 125;
/** Each address takes about 100 bytes. Beyond this number the address with the oldest offence is forgotten. */
const MAX_ADDRESSES = 10_000;

interface Offender {
  lastMs: number;
  nextStartMs: number;
}

/**
 * Addresses whose connections were closed for abuse. Their next connections start at a limited rate, so reconnecting
 * doesn't help an attacker. Open connections of the same address are not affected. Times are monotonic.
 */
export class Offenders {
  /** Ordered by the last offence, oldest first. */
  readonly #byAddress = new Map<string, Offender>();
  readonly #intervalMs: number;

  /** `intervalMs` is the time between two connections of a paced address. */
  constructor(intervalMs = START_INTERVAL_MS) {
    this.#intervalMs = intervalMs;
  }

  /** The delay before the next call of `tryStart` for connections that had to wait. */
  get retryMs(): number {
    return this.#intervalMs;
  }

  get size(): number {
    return this.#byAddress.size;
  }

  offend(remoteAddress: string, nowMs: number): void {
    const address = addressGroup(remoteAddress);
    const nextStartMs = this.#byAddress.get(address)?.nextStartMs ?? nowMs + this.#intervalMs;
    this.#byAddress.delete(address);
    this.#byAddress.set(address, { lastMs: nowMs, nextStartMs });
    for (const [oldest, { lastMs }] of this.#byAddress) {
      if (lastMs + PACED_MS > nowMs && this.#byAddress.size <= MAX_ADDRESSES) break;
      this.#byAddress.delete(oldest);
    }
  }

  isPaced(remoteAddress: string, nowMs: number): boolean {
    const offender = this.#byAddress.get(addressGroup(remoteAddress));
    return offender !== undefined && offender.lastMs + PACED_MS > nowMs;
  }

  /** Reports whether a connection of the address may start now. If so, counts it as started. */
  tryStart(remoteAddress: string, nowMs: number): boolean {
    const offender = this.#byAddress.get(addressGroup(remoteAddress));
    if (offender === undefined || offender.lastMs + PACED_MS <= nowMs) return true;
    if (nowMs < offender.nextStartMs) return false;
    offender.nextStartMs = nowMs + this.#intervalMs;
    return true;
  }
}
