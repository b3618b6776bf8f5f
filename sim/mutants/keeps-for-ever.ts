import type { planKeptPods as real } from "../../coordinator/src/control/kept-pods/plan.ts";

export * from "../../coordinator/src/control/kept-pods/plan.ts";

/** Removes no record of a kept pod. */
export const planKeptPods: typeof real = () => ({ remove: [], nextMs: undefined });
