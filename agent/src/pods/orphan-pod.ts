import type { Pod } from "./pod.ts";

// For containers whose pod is not known any more: enough to end well.
const ORPHAN_GRACE_MS = 10_000;

/** Returns a placeholder for a pod of which only the uid is known, so that its remains are removed. */
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
