import type { Pod } from "./pod.ts";

// For containers whose pod is not known any more: enough to end well.
const ORPHAN_GRACE_MS = 10_000;

/** Stands for a pod of which nothing but its uid is known, so that what is left of it is removed. */
export function orphanPod(uid: string): Pod {
  return {
    uid,
    namespace: "",
    name: "",
    specHash: "",
    stopping: true,
    hostname: "",
    graceMs: ORPHAN_GRACE_MS,
    restartPolicy: "Never",
    containers: [],
  };
}
