import {
  type ConnectRequest,
  type ConnectResponse,
  type Hello,
  type PodAssignment,
  PodPhase,
  PodStatus,
} from "@forage/proto/forage/agent/v1/agent";

/** Tracks the assignment of a simulated agent, and answers it: every pod starts and ends at once. */
export class PodAnswers {
  readonly pods = new Map<string, PodAssignment>();
  /** Ports of the host, counted up. No program listens on them. */
  readonly #hostPorts = new Map<string, number>();
  readonly #onGiven: () => void;

  constructor(onGiven: () => void) {
    this.#onGiven = onGiven;
  }

  statusOf(pod: PodAssignment, ready = true): PodStatus {
    const hostPort = this.#hostPorts.get(pod.uid) ?? FIRST_HOST_PORT + this.#hostPorts.size;
    this.#hostPorts.set(pod.uid, hostPort);
    return statusOf(pod, ready, hostPort);
  }

  /** Returns all its pods as an agent reports them when it connects. */
  statuses(): PodStatus[] {
    return [...this.pods.values()].map((pod) => this.statusOf(pod));
  }

  /** Returns the answer to a message; `undefined` if it needs none. */
  answer({ message }: ConnectResponse): ConnectRequest | undefined {
    const given =
      message?.$case === "snapshot"
        ? message.value.pods
        : message?.$case === "delta"
          ? message.value.upserts
          : [];
    if (message?.$case === "delta") for (const uid of message.value.removals) this.pods.delete(uid);
    for (const pod of given) {
      if (!this.pods.has(pod.uid)) this.#onGiven();
      this.pods.set(pod.uid, pod);
    }
    return given.length === 0 ? undefined : statusesOf(given.map((pod) => this.statusOf(pod)));
  }
}

export function statusesOf(pods: PodStatus[]): ConnectRequest {
  return { message: { $case: "podStatuses", value: { pods } } };
}

export function statusOf(
  { uid, namespace, name, specHash, stopping, template }: PodAssignment,
  ready = true,
  hostPort = FIRST_HOST_PORT,
): PodStatus {
  if (stopping) return PodStatus.fromPartial({ uid, namespace, name, phase: PodPhase.REMOVED });
  const container = {
    name: template?.container?.name ?? "",
    ready,
    state: { $case: "running", value: {} },
  } as const;
  const ports = template?.container?.ports ?? [];
  const hostPorts = ports.map(({ containerPort, protocol }) => ({
    container: container.name,
    containerPort,
    protocol,
    hostPort,
  }));
  return PodStatus.fromPartial({
    uid,
    namespace,
    name,
    specHash,
    phase: PodPhase.RUNNING,
    ready,
    podIp: "10.0.0.1",
    containers: [container],
    hostPorts,
  });
}

export interface HollowHost {
  readonly address: string;
  /** The number of pods that fit on the host. */
  readonly pods: number;
}

/** A host with room for little more than its share of ten pods, so all nodes are used. */
export const DEFAULT_HOST: HollowHost = { address: "192.0.2.1", pods: 11 };
const FIRST_HOST_PORT = 20_000;

export function helloOf(
  node: string,
  { address, pods }: HollowHost = DEFAULT_HOST,
  statuses: PodStatus[] = [],
): Hello {
  const allocatable = { cpu: "16", memory: "64Gi", pods: String(pods), "ephemeral-storage": "100Gi" };
  return {
    agentVersion: "0.0.0",
    bootId: "boot",
    sessionId: `${node}-1`,
    clusterId: "",
    assignmentRevision: 0n,
    pods: statuses,
    node: {
      capacity: allocatable,
      allocatable,
      labels: {},
      address,
      addresses: [],
      networks: [],
      os: "linux",
      kernel: "",
      architecture: "amd64",
      containerdVersion: "",
      nerdctlVersion: "",
      conditions: [],
      images: [],
      runtimeClasses: [],
      selinux: false,
      claims: [],
    },
  };
}
