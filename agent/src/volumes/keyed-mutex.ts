/** Lets work of one key run one at a time, in the order it came; different keys don't wait for each other. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>();

  take<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const mine = before.then(work);
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

  /** Resolves once nothing is under way that had begun by now. */
  async idle(): Promise<void> {
    await Promise.all(this.#last.values());
  }
}
