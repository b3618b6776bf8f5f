import type { MonotonicClock } from "@forage/common/clock";
import type { StoreHealth } from "../store.ts";
import { StoreError } from "../store-error.ts";
import type { EtcdError } from "./etcd-error.ts";

/**
 * The default time for which writes wait for etcd before they fail. An election of etcd takes 1 to 2 seconds, which clients
 * should not notice.
 */
export const WRITE_WAIT_MS = 5_000;

/** Tracks since when etcd has not responded, and the last error. */
export class Outage {
  readonly #clock: MonotonicClock;
  readonly #writeWaitMs: number;
  #sinceMs: number | undefined;
  #last: EtcdError | undefined;

  constructor(clock: MonotonicClock, writeWaitMs = WRITE_WAIT_MS) {
    this.#clock = clock;
    this.#writeWaitMs = writeWaitMs;
  }

  answered(): void {
    this.#sinceMs = undefined;
    this.#last = undefined;
  }

  unanswered(error: EtcdError): void {
    this.#sinceMs ??= this.#clock.monotonicMs();
    this.#last = error;
  }

  /** The milliseconds since the last response. 0 while etcd responds. */
  get lastedMs(): number {
    return this.#sinceMs === undefined ? 0 : this.#clock.monotonicMs() - this.#sinceMs;
  }

  /** The error for writes that have waited too long. Undefined while they may wait. */
  get stalled(): StoreError | undefined {
    if (this.health().status === "ok") return undefined;
    return new StoreError("UNCONFIRMED", `${this.#text()}; the change may still be made when it answers`, {
      cause: this.#last,
    });
  }

  health(): StoreHealth {
    if (this.#last === undefined || this.#sinceMs === undefined) return { status: "ok" };
    if (this.#last.code === "NO_SPACE") {
      const message = `etcd has no space left: compact and defragment it or raise its quota, then disarm its alarm (${this.#last.message})`;
      return { status: "read-only", reason: "no-space", message };
    }
    if (this.#clock.monotonicMs() - this.#sinceMs < this.#writeWaitMs) return { status: "ok" };
    return { status: "read-only", reason: "unavailable", message: this.#text() };
  }

  #text(): string {
    const seconds = Math.round((this.#clock.monotonicMs() - (this.#sinceMs ?? 0)) / 1000);
    const { code, message } = this.#last ?? { code: "UNAVAILABLE", message: "no answer" };
    return code === "DENIED"
      ? `etcd refuses the coordinator: ${message}`
      : `etcd has not answered for ${seconds} s: ${message}`;
  }
}
