import { nodeLimits as real } from "../../coordinator/src/link/node-limits.ts";

export * from "../../coordinator/src/link/node-limits.ts";

/** Replaces pods of a node as soon as it is seen to be lost. */
export const nodeLimits: typeof real = (config) => {
  const limits = real(config);
  return { ...limits, tolerations: { ...limits.tolerations, unreachableMs: 3_000 } };
};
