/** Holds one value. Groups refer to it, so that replacing the value doesn't change its groups. */
interface Place<V> {
  readonly key: string;
  value: V;
}

/** A map of values by key that also indexes them by groups and by an identifier. */
export class IndexMap<V> {
  readonly #places = new Map<string, Place<V>>();
  readonly #groups = new Map<string, Set<Place<V>>>();
  readonly #byId = new Map<string, Place<V>>();
  readonly #groupsOf: (value: V) => readonly string[];
  readonly #idOf: (value: V) => string | undefined;

  constructor(
    groupsOf: (value: V) => readonly string[] = () => [],
    idOf: (value: V) => string | undefined = () => undefined,
  ) {
    this.#groupsOf = groupsOf;
    this.#idOf = idOf;
  }

  get size(): number {
    return this.#places.size;
  }

  get(key: string): V | undefined {
    return this.#places.get(key)?.value;
  }

  /** Returns the value with the identifier. If several have it, returns the last one that was set. */
  byId(id: string): V | undefined {
    return this.#byId.get(id)?.value;
  }

  /** Returns all values in the order in which their keys were added. */
  values(): V[] {
    return valuesOf(this.#places.values());
  }

  /** Returns all values of a group, in the order in which they were added. */
  group(name: string): V[] {
    return valuesOf(this.#groups.get(name) ?? []);
  }

  hasGroup(name: string): boolean {
    return this.#groups.has(name);
  }

  groupSize(name: string): number {
    return this.#groups.get(name)?.size ?? 0;
  }

  /** Sets the value of a key, or removes it if the value is undefined. Returns the previous value. */
  set(key: string, value: V | undefined): V | undefined {
    const known = this.#places.get(key);
    if (value === undefined) {
      if (known !== undefined) this.#remove(known);
      return known?.value;
    }
    if (known === undefined) {
      this.#add({ key, value });
      return undefined;
    }
    const before = known.value;
    this.#move(known, before, value);
    return before;
  }

  /** Replaces a value with one that has the same groups and identifier. Does nothing if the key has no value. */
  replace(key: string, value: V): void {
    const place = this.#places.get(key);
    if (place !== undefined) place.value = value;
  }

  #add(place: Place<V>): void {
    this.#places.set(place.key, place);
    for (const group of this.#groupsOf(place.value)) this.#enter(group, place);
    const id = this.#idOf(place.value);
    if (id !== undefined) this.#byId.set(id, place);
  }

  #remove(place: Place<V>): void {
    for (const group of this.#groupsOf(place.value)) this.#leave(group, place);
    this.#forgetId(this.#idOf(place.value), place);
    this.#places.delete(place.key);
  }

  #move(place: Place<V>, before: V, after: V): void {
    const oldGroups = this.#groupsOf(before);
    const newGroups = this.#groupsOf(after);
    for (const group of oldGroups) if (!newGroups.includes(group)) this.#leave(group, place);
    for (const group of newGroups) if (!oldGroups.includes(group)) this.#enter(group, place);
    const [oldId, newId] = [this.#idOf(before), this.#idOf(after)];
    if (oldId !== newId) this.#forgetId(oldId, place);
    if (newId !== undefined) this.#byId.set(newId, place);
    place.value = after;
  }

  #forgetId(id: string | undefined, place: Place<V>): void {
    if (id !== undefined && this.#byId.get(id) === place) this.#byId.delete(id);
  }

  #enter(group: string, place: Place<V>): void {
    const places = this.#groups.get(group);
    if (places === undefined) this.#groups.set(group, new Set([place]));
    else places.add(place);
  }

  #leave(group: string, place: Place<V>): void {
    const places = this.#groups.get(group);
    if (places === undefined) return;
    places.delete(place);
    if (places.size === 0) this.#groups.delete(group);
  }
}

/** A loop is used because `Array.from` with a function takes four times as long, and values are read in each evaluation. */
function valuesOf<V>(places: Iterable<Place<V>>): V[] {
  const values: V[] = [];
  for (const { value } of places) values.push(value);
  return values;
}
