import type { Pod } from "./pod.ts";

// The grace period for containers of unknown pods.
const ORPHAN_GRACE_MS = 10_000;

/** Returns a placeholder for a pod whose uid alone is known, so that its remains are removed. */
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
