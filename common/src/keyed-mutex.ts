/**
 * Runs tasks with the same key one after the other, in the order of the calls, and tasks with different keys
 * concurrently. Callers have to bound the number of waiting tasks.
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

  /** Resolves when all tasks from earlier calls have ended. */
  async idle(): Promise<void> {
    await Promise.all(this.#last.values());
  }
}
