import { DriverError } from "../driver-error.ts";

/** Counts open objects of one kind and rejects more than the limit. */
export class Counter {
  readonly #what: string;
  readonly #max: number;
  #open = 0;

  constructor(what: string, max: number) {
    this.#what = what;
    this.#max = max;
  }

  /** Counts one more object. The returned function must be called once when the object is closed. */
  enter(): () => void {
    if (this.#open >= this.#max)
      throw new DriverError(
        "FAILED_PRECONDITION",
        `${this.#max} ${this.#what} are open already: try again when one has ended`,
      );
    this.#open += 1;
    return () => {
      this.#open -= 1;
    };
  }

  async during<T>(run: () => Promise<T>): Promise<T> {
    const leave = this.enter();
    try {
      return await run();
    } finally {
      leave();
    }
  }
}
