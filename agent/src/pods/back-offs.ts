import type { BackOff } from "@forage/common/back-off";

// Kubernetes' values: 10 s, doubling up to 5 min.
export const RESTART_BACK_OFF: BackOff = { baseMs: 10_000, capMs: 300_000 };
// Starts short, because a registry is often reachable again within seconds.
export const IMAGE_BACK_OFF: BackOff = { baseMs: 5_000, capMs: 300_000 };
// For calls to the runtime and the network that failed through no fault of the pod.
export const FAULT_BACK_OFF: BackOff = { baseMs: 500, capMs: 30_000 };
