import { type stopPod as real, rewritePod } from "../../../src/control/pod-writes.ts";

export * from "../../../src/control/pod-writes.ts";

/** Has a pod placed anew instead of stopping it. */
export const stopPod: typeof real = (pod) => rewritePod(pod, { ...pod.record, node: "", boundAt: undefined });
