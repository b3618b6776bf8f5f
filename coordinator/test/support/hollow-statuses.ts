import { type HostPort, type PodAssignment, PodPhase, PodStatus } from "@forage/proto/forage/agent/v1/agent";

export function runningPod(pod: PodAssignment, hostPort: number): PodStatus {
  const name = pod.template?.container?.name ?? "";
  const ports = [...(pod.template?.container?.ports ?? []), ...pod.servicePorts];
  return PodStatus.fromPartial({
    ...identityOf(pod),
    phase: PodPhase.RUNNING,
    ready: true,
    podIp: "10.0.0.1",
    containers: [{ name, ready: true, state: { $case: "running", value: {} } }],
    hostPorts: ports.map((port): HostPort => {
      return {
        container: name,
        containerPort: port.containerPort,
        protocol: port.protocol || "TCP",
        hostPort,
      };
    }),
  });
}

export function waitingPod(
  pod: PodAssignment,
  reason: string,
  message: string,
  restartCount = 0,
  exitCode?: number,
): PodStatus {
  const lastTermination =
    exitCode === undefined ? undefined : { exitCode, reason: "Error", message: "last words" };
  return PodStatus.fromPartial({
    ...identityOf(pod),
    phase: PodPhase.PENDING,
    containers: [
      {
        name: pod.template?.container?.name ?? "",
        restartCount,
        state: { $case: "waiting", value: { reason, message } },
        ...(lastTermination && { lastTermination }),
      },
    ],
  });
}

/** Returns the status of a pod whose container has ended and whose policy forbids a restart. */
export function endedPod(pod: PodAssignment, exitCode: number, message = ""): PodStatus {
  const ended = { exitCode, reason: exitCode === 0 ? "Completed" : "Error", message };
  return PodStatus.fromPartial({
    ...identityOf(pod),
    phase: exitCode === 0 ? PodPhase.SUCCEEDED : PodPhase.FAILED,
    containers: [{ name: pod.template?.container?.name ?? "", state: { $case: "terminated", value: ended } }],
  });
}

export function removedPod(pod: PodAssignment): PodStatus {
  return PodStatus.fromPartial({ ...identityOf(pod), phase: PodPhase.REMOVED });
}

function identityOf({ uid, namespace, name, specHash }: PodAssignment) {
  return { uid, namespace, name, specHash };
}
