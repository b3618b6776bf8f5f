import { renew as real } from "../../coordinator/src/link/enroll.ts";

export * from "../../coordinator/src/link/enroll.ts";

/** Accepts only the two newest certificates of a node, whether or not the node has received them. */
export const renew: typeof real = (request, context, options) => {
  const { caller } = context;
  const unnamed = caller.type === "node" ? { type: caller.type, nodeId: caller.nodeId } : caller;
  return real(request, { ...context, caller: unnamed }, options);
};
