import type { evictionOf as real } from "../../coordinator/src/control/eviction/eviction-of.ts";

export * from "../../coordinator/src/control/eviction/eviction-of.ts";

/** Never evicts pods. */
export const evictionOf: typeof real = () => undefined;
