import { type stopPod as real, rewritePod } from "../../coordinator/src/control/pod-writes.ts";

export * from "../../coordinator/src/control/pod-writes.ts";

/** Places a pod again instead of stopping it. */
export const stopPod: typeof real = (pod) => rewritePod(pod, { ...pod.record, node: "", boundAt: undefined });
