import { nodeLimits as real } from "../../coordinator/src/link/node-limits.ts";

export * from "../../coordinator/src/link/node-limits.ts";

/** Replaces the pods of a node as soon as the node is lost. */
export const nodeLimits: typeof real = (config) => {
  const limits = real(config);
  return { ...limits, tolerations: { ...limits.tolerations, unreachableMs: 3_000 } };
};
