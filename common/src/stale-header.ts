/**
 * The header of a response that a follower gives from its own copy of the store because the leader is unreachable. Its
 * value is the time in milliseconds since the copy was last complete.
 */
export const STALE_HEADER = "forage-stale";
