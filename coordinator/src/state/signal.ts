/** "Something changed": raising it any number of times before a wait makes that wait return once, at once. */
export class Signal {
  #raised = false;
  #wake: (() => void) | undefined;

  raise(): void {
    this.#raised = true;
    this.#wake?.();
  }

  /** Resolves once raised or aborted. One waiter at a time. */
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
