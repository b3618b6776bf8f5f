/** The limit of draws for one name. */
const MAX_DRAWS = 1_000;

/**
 * Returns a drawn name that is not among the used ones, and adds it to them. Two of 500 random names with five characters are
 * equal in one of 115 cases, and two writes of one record would fail their whole transaction.
 */
export function drawUnused(used: Set<string>, draw: () => string): string {
  for (let draws = 0; draws < MAX_DRAWS; draws++) {
    const name = draw();
    if (used.has(name)) continue;
    used.add(name);
    return name;
  }
  throw new Error(`none of ${MAX_DRAWS} random names is unused`);
}
