import { CoordinatorError } from "../../errors.ts";
import type { Clock } from "../../time/clock.ts";

/** Aborts a transfer whose peer neither sends nor accepts anything for a time. */
export class IdleWatch {
  readonly #clock: Pick<Clock, "schedule">;
  readonly #idleMs: number;
  readonly #abort = new AbortController();
  #cancel = (): void => {};

  constructor(clock: Pick<Clock, "schedule">, idleMs: number) {
    this.#clock = clock;
    this.#idleMs = idleMs;
  }

  /** Aborts with DEADLINE_EXCEEDED. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Starts to wait for the peer. */
  waiting(): void {
    this.#cancel();
    this.#cancel = this.#clock.schedule(this.#idleMs, () =>
      this.#abort.abort(
        new CoordinatorError(
          "DEADLINE_EXCEEDED",
          `the transfer made no progress for ${this.#idleMs / 1000} s: the peer neither sent nor accepted data`,
        ),
      ),
    );
  }

  /** The peer has sent or accepted something, or the transfer is over. */
  progressed(): void {
    this.#cancel();
    this.#cancel = () => {};
  }
}
