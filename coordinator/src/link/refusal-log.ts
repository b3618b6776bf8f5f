import type { Log } from "@forage/common/log";
import { addressGroup } from "@forage/identity/tls-server";
import type { Clock } from "../time/clock.ts";

/** The interval of lines for one address. It is short enough to notice an attack, and long enough to not fill a disk. */
const INTERVAL_MS = 10_000;
/** The limit of addresses with lines of their own. Refusals of others are counted together. */
const MAX_ADDRESSES = 100;
const OTHERS = "others";

interface Refusals {
  count: number;
  last: Readonly<Record<string, unknown>>;
}

/**
 * Logs the first refused join of an address at once, and further ones within 10 s as one line with their number. That line
 * is written with the next refusal after the 10 s, so that no timer is needed.
 */
export class RefusalLog {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #refusals = new Map<string, Refusals>();
  #reportedMs = Number.NEGATIVE_INFINITY;

  constructor(log: Log, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Records a refused join. `peer` is `address:port`. */
  note(peer: string, fields: Readonly<Record<string, unknown>>): void {
    if (this.#clock.monotonicMs() - this.#reportedMs >= INTERVAL_MS) this.#report();
    const address = addressGroup(peer.slice(0, peer.lastIndexOf(":")));
    const key = this.#refusals.has(address) || this.#refusals.size < MAX_ADDRESSES ? address : OTHERS;
    const known = this.#refusals.get(key);
    if (known !== undefined) {
      known.count += 1;
      known.last = fields;
      return;
    }
    this.#log.warn({ event: "join-refused", peer, ...fields });
    this.#refusals.set(key, { count: 0, last: fields });
  }

  /** Logs the numbers. An address with further refusals keeps its entry for another interval; the others are dropped. */
  #report(): void {
    this.#reportedMs = this.#clock.monotonicMs();
    for (const [address, refusals] of this.#refusals) {
      const { count, last } = refusals;
      if (count === 0) this.#refusals.delete(address);
      else this.#log.warn({ event: "joins-refused", address, count, last });
      refusals.count = 0;
    }
  }
}
