import type { planKeptPods as real } from "../../../src/control/kept-pods/plan.ts";

export * from "../../../src/control/kept-pods/plan.ts";

/** Removes no record of a kept pod. */
export const planKeptPods: typeof real = () => ({ remove: [], nextMs: undefined });
