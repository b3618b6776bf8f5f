/**
 * The header of an answer that a coordinator gives from its own copy of the store because the one that leads can't be reached. Its
 * value is the time since this copy was last complete, in milliseconds.
 */
export const STALE_HEADER = "forage-stale";
