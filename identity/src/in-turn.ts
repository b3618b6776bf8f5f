/** A set whose members are visited in turn, a few at each call. The cost of a call doesn't grow with the set. */
export class InTurn<T> {
  readonly #members: ReadonlySet<T>;
  #rest: Iterator<T>;

  constructor(members: ReadonlySet<T>) {
    this.#members = members;
    this.#rest = members.values();
  }

  /** Yields up to `limit` members, each once. The next call continues after them. */
  *next(limit: number): Generator<T, void, undefined> {
    for (let left = Math.min(limit, this.#members.size); left > 0; left--) {
      let { done, value } = this.#rest.next();
      if (done) {
        this.#rest = this.#members.values();
        ({ done, value } = this.#rest.next());
      }
      if (done) return;
      yield value;
    }
  }
}
