/** Values by key, and keys by one or more groups; both kept in step. */
export class IndexMap<V> {
  readonly #values = new Map<string, V>();
  readonly #groups = new Map<string, Set<string>>();
  readonly #groupsOf: (value: V) => readonly string[];

  constructor(groupsOf: (value: V) => readonly string[] = () => []) {
    this.#groupsOf = groupsOf;
  }

  get size(): number {
    return this.#values.size;
  }

  get(key: string): V | undefined {
    return this.#values.get(key);
  }

  values(): IterableIterator<V> {
    return this.#values.values();
  }

  /** Returns all values of a group, in the order in which they were added. */
  group(name: string): V[] {
    const found: V[] = [];
    for (const key of this.#groups.get(name) ?? []) {
      const value = this.#values.get(key);
      if (value !== undefined) found.push(value);
    }
    return found;
  }

  hasGroup(name: string): boolean {
    return this.#groups.has(name);
  }

  groupSize(name: string): number {
    return this.#groups.get(name)?.size ?? 0;
  }

  /** Sets or, with undefined, removes; returns what was there. */
  set(key: string, value: V | undefined): V | undefined {
    const before = this.#values.get(key);
    const oldGroups = before === undefined ? [] : this.#groupsOf(before);
    const newGroups = value === undefined ? [] : this.#groupsOf(value);
    for (const group of oldGroups) if (!newGroups.includes(group)) this.#leave(group, key);
    for (const group of newGroups) if (!oldGroups.includes(group)) this.#enter(group, key);
    if (value === undefined) this.#values.delete(key);
    else this.#values.set(key, value);
    return before;
  }

  #enter(group: string, key: string): void {
    const keys = this.#groups.get(group);
    if (keys === undefined) this.#groups.set(group, new Set([key]));
    else keys.add(key);
  }

  #leave(group: string, key: string): void {
    const keys = this.#groups.get(group);
    if (keys === undefined) return;
    keys.delete(key);
    if (keys.size === 0) this.#groups.delete(group);
  }
}
