/**
 * Runs tasks of one key one after the other, tasks of different keys side by side. Two requests that each fit a quota can't pass
 * the check together before either is stored. Each waiting task is a call in progress, so that the server's limits bound them.
 */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>();

  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const mine = before.then(task, task);
    this.#last.set(key, mine);
    try {
      return await mine;
    } finally {
      if (this.#last.get(key) === mine) this.#last.delete(key);
    }
  }
}
