import { CoordinatorError } from "../../errors.ts";
import type { Clock } from "../../time/clock.ts";

/** Aborts a transfer if its peer neither sends nor accepts data for some time. */
export class IdleWatch {
  readonly #clock: Pick<Clock, "schedule">;
  readonly #idleMs: number;
  readonly #abort = new AbortController();
  #cancel = (): void => {};

  constructor(clock: Pick<Clock, "schedule">, idleMs: number) {
    this.#clock = clock;
    this.#idleMs = idleMs;
  }

  /** The signal that aborts with DEADLINE_EXCEEDED when the time is over. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Starts the timer: the transfer waits for its peer. */
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

  /** Stops the timer: the peer has sent or accepted data, or the transfer is over. */
  progressed(): void {
    this.#cancel();
    this.#cancel = () => {};
  }
}
