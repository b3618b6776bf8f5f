import type { Socket } from "node:net";
import { addressGroup } from "../address-group.ts";
import { type BudgetRate, RateBudget } from "../session-guard/rate-budget.ts";

export interface UnusedHandshakesOptions {
  /** The budget of unused handshakes per address. */
  readonly rate: BudgetRate;
  readonly monotonicMs: () => number;
  /** Called for each handshake beyond the rate. */
  readonly onExcess: (remoteAddress: string) => void;
}

/** Each address takes about 150 bytes. Beyond this number the address that was counted longest ago is forgotten. */
const MAX_ADDRESSES = 10_000;

/**
 * Counts unused handshakes, those whose connections end without any accepted credentials. A handshake costs the server
 * about a millisecond of processor time, whatever follows it. Each used handshake makes up for an unused one: when
 * thousands of hosts behind one NAT connect together, some of them time out.
 */
export class UnusedHandshakes {
  readonly #options: UnusedHandshakesOptions;
  /** The connections that have presented no credentials so far, with their addresses. */
  readonly #unused = new Map<Socket, string>();
  /** Ordered by the last unused handshake, oldest first. */
  readonly #budgets = new Map<string, RateBudget>();

  constructor(options: UnusedHandshakesOptions) {
    this.#options = options;
  }

  /** The number of addresses that are remembered. */
  get addresses(): number {
    return this.#budgets.size;
  }

  /** Starts tracking a connection whose handshake starts now. `end` must be called when it has closed. */
  start(socket: Socket, remoteAddress: string): void {
    this.#unused.set(socket, remoteAddress);
  }

  /** Counts the connection if it was not used. */
  end(socket: Socket): void {
    const remoteAddress = this.#unused.get(socket);
    if (remoteAddress === undefined) return;
    this.#unused.delete(socket);
    this.#count(remoteAddress);
  }

  /** Records that the connection was used. */
  use(socket: Socket): void {
    const remoteAddress = this.#unused.get(socket);
    if (remoteAddress === undefined) return;
    this.#unused.delete(socket);
    this.#budgets.get(addressGroup(remoteAddress))?.restore(this.#options.monotonicMs());
  }

  #count(remoteAddress: string): void {
    const { rate, monotonicMs, onExcess } = this.#options;
    const nowMs = monotonicMs();
    const address = addressGroup(remoteAddress);
    const budget = this.#budgets.get(address) ?? new RateBudget(rate, nowMs);
    this.#budgets.delete(address);
    this.#budgets.set(address, budget);
    const [oldest] = this.#budgets.keys();
    if (this.#budgets.size > MAX_ADDRESSES && oldest !== undefined) this.#budgets.delete(oldest);
    if (!budget.spend(nowMs)) onExcess(remoteAddress);
  }
}
