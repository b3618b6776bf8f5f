/**
 * A notification that something has changed. If it was raised before a wait, any number of times, the wait resolves at
 * once.
 */
export class Signal {
  #raised = false;
  #wake: (() => void) | undefined;

  raise(): void {
    this.#raised = true;
    this.#wake?.();
  }

  /** Resolves when the signal is raised or `signal` aborts. Only one wait may be pending. */
  async wait(signal: AbortSignal): Promise<void> {
    if (!this.#raised && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const finish = (): void => {
          this.#wake = undefined;
          signal.removeEventListener("abort", finish);
          resolve();
        };
        this.#wake = finish;
        signal.addEventListener("abort", finish, { once: true });
      });
    }
    this.#raised = false;
  }
}
