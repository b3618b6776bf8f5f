import type { Clock } from "./clock.ts";

/**
 * Returns a function that calls `read` only if its last result is older than `maxAgeMs`, and otherwise returns that
 * result.
 */
export function remembered<T>(read: () => T, maxAgeMs: number, clock: Pick<Clock, "monotonicMs">): () => T {
  let last: { readonly value: T; readonly atMs: number } | undefined;
  return () => {
    const nowMs = clock.monotonicMs();
    if (last === undefined || nowMs - last.atMs >= maxAgeMs) last = { value: read(), atMs: nowMs };
    return last.value;
  };
}
