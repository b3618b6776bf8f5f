import type { recordedPods as real } from "../../agent/src/recorded-pods.ts";

export * from "../../agent/src/recorded-pods.ts";

/** Starts without the pods of its journal, as if the host were new. */
export const recordedPods: typeof real = () => [];
