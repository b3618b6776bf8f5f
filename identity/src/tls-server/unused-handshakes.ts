import type { Socket } from "node:net";
import { addressGroup } from "../address-group.ts";
import { type BudgetRate, RateBudget } from "../session-guard/rate-budget.ts";

export interface UnusedHandshakesOptions {
  /** The handshakes without use of one address. */
  readonly rate: BudgetRate;
  readonly monotonicMs: () => number;
  /** Called for each handshake beyond the rate. */
  readonly onExcess: (remoteAddress: string) => void;
}

/** About 150 bytes each. Beyond it the address that was counted longest ago is forgotten. */
const MAX_ADDRESSES = 10_000;

/**
 * Counts handshakes without use: their connections ended before any accepted credentials. A handshake costs the server about a
 * millisecond of processor time, whatever follows it.
 */
export class UnusedHandshakes {
  readonly #options: UnusedHandshakesOptions;
  /** Connections that have shown no credentials so far. */
  readonly #unused = new Set<Socket>();
  /** Ordered by the last handshake without use, oldest first. */
  readonly #budgets = new Map<string, RateBudget>();

  constructor(options: UnusedHandshakesOptions) {
    this.#options = options;
  }

  /** The number of addresses that are remembered. */
  get addresses(): number {
    return this.#budgets.size;
  }

  /** Follows a connection whose handshake starts now. */
  start(socket: Socket, remoteAddress: string): void {
    this.#unused.add(socket);
    socket.once("close", () => {
      if (this.#unused.delete(socket)) this.#count(remoteAddress);
    });
  }

  /** Takes note that the connection was of use. */
  use(socket: Socket): void {
    this.#unused.delete(socket);
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
