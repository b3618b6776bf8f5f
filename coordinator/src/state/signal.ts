/**
 * A notification that something has changed. If it was raised before a wait, any number of times, the wait resolves at
 * once.
 */
export class Signal {
  #raised = false;
  #resolve: (() => void) | undefined;
  /** The signal of the last wait, which has the listener. */
  #abortedBy: AbortSignal | undefined;
  readonly #lower = (): void => {
    this.#raised = false;
  };
  readonly #finish = (): void => {
    const resolve = this.#resolve;
    this.#resolve = undefined;
    resolve?.();
  };

  raise(): void {
    this.#raised = true;
    this.#finish();
  }

  /**
   * Resolves when the signal is raised or `signal` aborts. Only one wait may be pending. The listener on `signal` stays until
   * a wait with another one, because thousands of loops wait again and again with the same signal. Their waits are
   * pending all the time, and an async function takes 300 bytes more.
   */
  wait(signal: AbortSignal): Promise<void> {
    const raised = this.#raised || signal.aborted ? Promise.resolve() : this.#raisedOrAborted(signal);
    return raised.then(this.#lower);
  }

  #raisedOrAborted(signal: AbortSignal): Promise<void> {
    if (this.#abortedBy !== signal) {
      this.#abortedBy?.removeEventListener("abort", this.#finish);
      this.#abortedBy = signal;
      signal.addEventListener("abort", this.#finish, { once: true });
    }
    return new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }
}
