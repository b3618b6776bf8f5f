import { type ContainerStatus, PodPhase, type PodStatus } from "@forage/proto/forage/agent/v1/agent";
import {
  type GetRolloutResponse,
  Node,
  Pod,
  Resource,
  type RolloutResourceState,
} from "@forage/proto/forage/operator/v1/operator";
import { RolloutStatus } from "@forage/proto/forest/v1/forage";

export function ago(seconds: number): { seconds: bigint; nanos: number } {
  return { seconds: BigInt(Math.floor(Date.now() / 1000) - seconds), nanos: 0 };
}

export function aPod(fields: Partial<Pod> = {}): Pod {
  return Pod.fromPartial({
    uid: "0123456789abcdef",
    namespace: "default",
    name: "web-1",
    workloadKind: "container_service",
    workloadName: "web",
    node: "n1",
    // Ages in whole hours make the output independent of the speed of the test.
    createdAt: ago(192_600),
    templateHash: "feedfacefeedface",
    status: aPodStatus(),
    ...fields,
  } as Parameters<typeof Pod.fromPartial>[0]);
}

export function aPodStatus(fields: Partial<PodStatus> = {}): PodStatus {
  return {
    uid: "0123456789abcdef",
    namespace: "default",
    name: "web-1",
    phase: PodPhase.RUNNING,
    ready: true,
    reason: "",
    message: "",
    podIp: "10.1.0.2",
    podIps: [],
    specHash: "",
    containers: [aContainer()],
    hostPorts: [{ container: "main", containerPort: 8080, protocol: "TCP", hostPort: 31000 }],
    startedAt: ago(190),
    readyAt: ago(189),
    ...fields,
  };
}

export function aContainer(fields: Partial<ContainerStatus> = {}): ContainerStatus {
  return {
    name: "main",
    containerId: "c0ffee",
    image: "registry.example/web:1",
    state: { $case: "running", value: { startedAt: ago(190) } },
    lastTermination: undefined,
    restartCount: 0,
    ready: true,
    terminations: [],
    init: false,
    started: true,
    ...fields,
  };
}

export function aResource(fields: Partial<Resource> = {}): Resource {
  return Resource.fromPartial({
    namespace: "default",
    kind: "container_service",
    name: "web",
    generation: 1n,
    createdAt: ago(7322),
    updatedAt: ago(60),
    replicas: 2,
    updatedReplicas: 2,
    readyReplicas: 2,
    rolloutId: "r-1",
    ...fields,
  } as Parameters<typeof Resource.fromPartial>[0]);
}

export function aNode(fields: Partial<Node> = {}): Node {
  return Node.fromPartial({
    name: "n1",
    ready: true,
    report: {
      address: "10.0.0.5",
      allocatable: { cpu: "3800m", memory: "15Gi" },
      capacity: { cpu: "4", memory: "16Gi" },
    },
    requested: { cpu: "1500m" },
    pods: 3,
    joinedAt: ago(90_000),
    lastSeenAt: ago(1),
    ...fields,
  } as Parameters<typeof Node.fromPartial>[0]);
}

export function aRollout(
  resources: readonly Partial<RolloutResourceState>[],
  finished = true,
): GetRolloutResponse {
  return {
    rolloutId: "r-1",
    namespace: "default",
    createdAt: ago(5),
    finished,
    resources: resources.map((fields) => ({
      kind: "container_service",
      name: "web",
      action: "create",
      status: RolloutStatus.SUCCEEDED,
      message: "",
      reason: "",
      finishedAt: undefined,
      now: "",
      ...fields,
    })),
  };
}
