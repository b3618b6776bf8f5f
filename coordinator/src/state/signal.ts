/**
 * A notification that something has changed. If it was raised before a wait, any number of times, the wait resolves at
 * once.
 */
export class Signal {
  #raised = false;
  #wake: (() => void) | undefined;
  readonly #lower = (): void => {
    this.#raised = false;
  };

  raise(): void {
    this.#raised = true;
    this.#wake?.();
  }

  /**
   * Resolves when the signal is raised or `signal` aborts. Only one wait may be pending. Thousands of waits are pending all
   * the time, and an async function takes 300 bytes more.
   */
  wait(signal: AbortSignal): Promise<void> {
    const raised = this.#raised || signal.aborted ? Promise.resolve() : this.#raisedOrAborted(signal);
    return raised.then(this.#lower);
  }

  #raisedOrAborted(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const finish = (): void => {
        this.#wake = undefined;
        signal.removeEventListener("abort", finish);
        resolve();
      };
      this.#wake = finish;
      signal.addEventListener("abort", finish, { once: true });
    });
  }
}
