/** Visits the members of a set in turn, a few at each call. The cost of a call is independent of the size of the set. */
export class InTurn<T> {
  readonly #members: ReadonlySet<T>;
  #rest: Iterator<T>;

  constructor(members: ReadonlySet<T>) {
    this.#members = members;
    this.#rest = members.values();
  }

  /** Yields at most so many members, each once. The next call goes on after them. */
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
