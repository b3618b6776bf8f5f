/**
 * Runs tasks of one key one after the other, in the order of the calls, and tasks of different keys side by side. The number of waiting
 * tasks is bounded by the callers.
 */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>();

  run<Result>(key: string, task: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const mine = before.then(task);
    const settled = mine.then(
      () => undefined,
      () => undefined,
    );
    this.#last.set(key, settled);
    void settled.then(() => {
      if (this.#last.get(key) === settled) this.#last.delete(key);
    });
    return mine;
  }

  /** Resolves when all tasks that were given before the call have ended. */
  async idle(): Promise<void> {
    await Promise.all(this.#last.values());
  }
}
