import type { evictionOf as real } from "../../../src/control/eviction/eviction-of.ts";

export * from "../../../src/control/eviction/eviction-of.ts";

/** Lets pods stay wherever they are. */
export const evictionOf: typeof real = () => undefined;
