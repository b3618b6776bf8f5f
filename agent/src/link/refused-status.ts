import type { PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import type { PodStatus } from "../pods/decide/pod-status.ts";

/** Returns the status of an assigned pod that the agent does not start. */
export function refusedStatus(
  { uid, namespace, name, specHash }: PodAssignment,
  reason: string,
  message: string,
): PodStatus {
  return {
    ...{ uid, namespace, name, specHash, reason, message },
    phase: "PENDING",
    ready: false,
    podIp: "",
    podIps: [],
    containers: [],
    hostPorts: [],
  };
}
