import { channelCredentials } from "@forage/identity/credentials";
import { createKeyAndCsr } from "@forage/identity/csr";
import { parseJoinToken } from "@forage/identity/join-token";
import {
  AgentServiceClient,
  AgentServiceService,
  type ClaimRef,
  type ConnectRequest,
  type ConnectResponse,
  EnrollmentServiceClient,
  type IdentityToken,
  type ImagePrefetch,
  ImagePull,
  type JoinResponse,
  type PodAssignment,
  type PodMetricsRequest,
  PodMetricsSample,
  type PodStatus,
  type RenewResponse,
  type ServiceState,
  type SessionRequest,
} from "@forage/proto/forage/agent/v1/agent";
import { ForageServiceService } from "@forage/proto/forest/v1/forage";
import { type ClientDuplexStream, Metadata } from "@grpc/grpc-js";
import { type Calls, callsOf } from "./calls.ts";
import { ReceivedGateway } from "./gateway/received-gateway.ts";
import { removedPod, runningPod } from "./hollow-statuses.ts";
import type { World } from "./world.ts";

export { endedPod, removedPod, runningPod, waitingPod } from "./hollow-statuses.ts";

/** Returns the status that a hollow agent reports for an assigned pod; undefined for none. */
export type Behaviour = (pod: PodAssignment) => PodStatus | undefined;

export interface HollowAgentOptions {
  readonly name?: string;
  readonly cpu?: string;
  readonly behaviour?: Behaviour;
  /** The pods that the agent reports when it connects. */
  readonly pods?: readonly PodStatus[];
  readonly address?: string;
  /** Whether heartbeats are sent. Default: true. */
  readonly heartbeats?: boolean;
  /** The labels that the agent reports. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The labels of its join token. */
  readonly tokenLabels?: Readonly<Record<string, string>>;
  /** The last state of the coordinator that the agent reports to have seen. */
  readonly seen?: { readonly lineage: string; readonly assignmentRevision: bigint };
  /** The networks in which the agent can announce addresses of load balancers. */
  readonly networks?: readonly string[];
}

export interface KeyPair {
  readonly certPem: string;
  readonly keyPem: string;
}

/** The part of a world that agents need. */
export type AgentWorld = Pick<World, "address" | "caPem" | "operator" | "atEnd">;

/**
 * An agent without a host, for tests of the coordinator's wire protocol. It joins and connects over
 * TLS like a real agent, and reports each assigned pod as running, or as the test's `behaviour`
 * returns. Tests of a real agent's reactions belong in `sim/`, or use real containers.
 */
export class HollowAgent {
  readonly name: string;
  readonly assignments = new Map<string, PodAssignment>();
  readonly sessions: SessionRequest[] = [];
  /** Called for each session that the coordinator requests, instead of adding it to `sessions`. */
  onSession: ((session: SessionRequest) => void) | undefined;
  /** The received services, by `namespace/name`. */
  readonly services = new Map<string, ServiceState>();
  readonly claimRemovals: ClaimRef[] = [];
  readonly identityTokens: Record<string, IdentityToken>[] = [];
  /** The last request for measurements. */
  metricsRequests: readonly PodMetricsRequest[] = [];
  /**
   * Returns the sample of a requested pod, which is sent with every heartbeat; undefined for none.
   */
  measure: ((request: PodMetricsRequest) => Parameters<typeof PodMetricsSample.fromPartial>[0]) | undefined;
  /** Whether the usage of every pod was requested. */
  measuresAllPods = false;
  /** The usage of the host, which is sent with every heartbeat; undefined for none. */
  hostUsage: { readonly cpuMilli: bigint; readonly memoryBytes: bigint; readonly pods: number } | undefined;
  /**
   * Returns the sample of any pod, which is sent with every heartbeat while the usage of every pod
   * is requested.
   */
  measureAny: ((podUid: string) => Parameters<typeof PodMetricsSample.fromPartial>[0]) | undefined;
  /** Returns the reported progress of a requested image pull; undefined for none. */
  pull: (image: ImagePrefetch) => Parameters<typeof ImagePull.fromPartial>[0] | undefined = () => ({
    present: true,
  });
  /** The received gateway state. */
  readonly gateway = new ReceivedGateway();
  /** Whether each gateway state is reported as applied at once. */
  appliesRoutes = true;
  /** The last requested image pulls. */
  prefetches: readonly ImagePrefetch[] = [];
  behaviour: Behaviour;
  /** Returns the status of a pod that must stop. */
  onStopping: Behaviour = removedPod;
  /** The last received state of the coordinator. */
  received: { readonly lineage: string; readonly assignmentRevision: bigint } | undefined;
  /** The number of requests to renew the certificate. */
  renewalsAsked = 0;
  ended: Error | undefined;
  /** The credentials with which the agent connects. */
  get pair(): KeyPair {
    return this.#pair;
  }
  readonly #world: AgentWorld;
  readonly #pair: KeyPair;
  readonly #options: HollowAgentOptions;
  #partial = false;
  readonly #ports = new Map<string, number>();
  readonly #client: AgentServiceClient;
  readonly #stream: ClientDuplexStream<ConnectRequest, ConnectResponse>;
  readonly #heartbeat: NodeJS.Timeout;

  static async start(world: AgentWorld, options: HollowAgentOptions = {}): Promise<HollowAgent> {
    const name = options.name ?? "n1";
    const { token } = await world.operator().createJoinToken({
      ttlSeconds: 0,
      nodeName: name,
      reusable: false,
      labels: { ...options.tokenLabels },
      taints: [],
    });
    const { keyPem, response } = await join(world, token, name);
    return new HollowAgent(world, name, { certPem: response.certificatePem, keyPem }, options);
  }

  constructor(world: AgentWorld, name: string, pair: KeyPair, options: HollowAgentOptions) {
    this.#world = world;
    this.#pair = pair;
    this.#options = options;
    world.atEnd(() => this.close());
    this.name = name;
    this.behaviour = options.behaviour ?? ((pod) => this.running(pod));
    this.#client = new AgentServiceClient(world.address, channelCredentials({ caPem: world.caPem, ...pair }));
    this.#stream = this.#client.connect();
    this.#stream.on("data", (message: ConnectResponse) => this.#take(message));
    this.#stream.on("error", (error) => {
      this.ended = error;
    });
    const allocatable = { cpu: options.cpu ?? "4", memory: "8Gi", pods: "110", "ephemeral-storage": "10Gi" };
    const node = {
      allocatable,
      capacity: allocatable,
      labels: { ...options.labels },
      address: options.address ?? "127.0.0.1",
      addresses: [],
      networks: [...(options.networks ?? [])],
    };
    this.#send({
      $case: "hello",
      value: {
        ...EMPTY_HELLO,
        ...options.seen,
        pods: [...(options.pods ?? [])],
        sessionId: `${name}-${Math.random()}`,
        node: { ...EMPTY_REPORT, ...node },
      },
    });
    this.#heartbeat = setInterval(() => {
      if (options.heartbeats === false) return;
      const value = { assignmentRevision: 0n, usage: this.hostUsage, answerRequested: false };
      this.#send({ $case: "heartbeat", value });
      this.#sendMetrics();
    }, 100);
  }

  get client(): AgentServiceClient {
    return this.#client;
  }

  /** Returns the clients' API, called with this node's certificate. */
  forage(): Calls<typeof ForageServiceService> {
    return callsOf(ForageServiceService, this.#client, new Metadata());
  }

  renew(csr: Buffer): Promise<RenewResponse> {
    return callsOf(AgentServiceService, this.#client, new Metadata()).renew({ csr });
  }

  /** Starts another process with the same certificate. */
  again(options: HollowAgentOptions = this.#options): HollowAgent {
    return new HollowAgent(this.#world, this.name, this.#pair, options);
  }

  /** Sends a message, even one that a real agent would not send. */
  say(message: NonNullable<ConnectRequest["message"]>): void {
    this.#send(message);
  }

  /**
   * Returns the status of a pod that runs and is ready, with a host port that no other pod of this
   * agent has.
   */
  running(pod: PodAssignment): PodStatus {
    const hostPort = this.#ports.get(pod.uid) ?? 20_000 + this.#ports.size;
    this.#ports.set(pod.uid, hostPort);
    return runningPod(pod, hostPort);
  }

  report(...pods: PodStatus[]): void {
    this.#send({ $case: "podStatuses", value: { pods } });
  }

  close(): void {
    clearInterval(this.#heartbeat);
    this.#stream.cancel();
    this.#client.close();
  }

  /** Reports the progress of the requested image pulls. */
  reportPulls(): void {
    const images = this.prefetches.flatMap((asked) => {
      const pull = this.pull(asked);
      return pull === undefined ? [] : [ImagePull.fromPartial({ id: asked.id, ...pull })];
    });
    if (images.length > 0) this.#send({ $case: "imagePulls", value: { images } });
  }

  /** Reports the received gateway state as applied. */
  reportGateway(ready = true, message = ""): void {
    const { version } = this.gateway;
    this.#send({
      $case: "gateway",
      value: { ready, message, proxyVersion: "1.40.0", version, problems: [] },
    });
  }

  #sendMetrics(): void {
    const { measure, measureAny, measuresAllPods, metricsRequests, assignments } = this;
    const others = measuresAllPods && measureAny !== undefined ? [...assignments.keys()] : [];
    const pods = [
      ...(measure === undefined ? [] : metricsRequests.map((it) => ({ podUid: it.podUid, ...measure(it) }))),
      ...others.map((podUid) => ({ podUid, ...measureAny?.(podUid) })),
    ].map((sample) => PodMetricsSample.fromPartial(sample));
    if (pods.length === 0) return;
    this.#send({ $case: "podMetrics", value: { pods } });
  }

  #send(message: NonNullable<ConnectRequest["message"]>): void {
    if (this.ended === undefined) this.#stream.write({ message });
  }

  #take({ message }: ConnectResponse): void {
    if (message?.$case === "snapshot" || message?.$case === "delta") {
      const { lineage, revision } = message.value;
      this.received = { lineage: lineage ?? "", assignmentRevision: revision };
    }
    if (message?.$case === "snapshot") {
      if (!this.#partial) this.assignments.clear();
      this.#partial = message.value.more;
      this.claimRemovals.push(...message.value.claimRemovals);
      this.#assign(message.value.pods);
    }
    if (message?.$case === "delta") {
      for (const uid of message.value.removals) this.assignments.delete(uid);
      this.claimRemovals.push(...message.value.claimRemovals);
      this.#assign(message.value.upserts);
    }
    if (message?.$case === "services") {
      for (const { namespace, name } of message.value.removals) this.services.delete(`${namespace}/${name}`);
      for (const service of message.value.upserts)
        this.services.set(`${service.namespace}/${service.name}`, service);
    }
    if (message?.$case === "gateway") {
      this.gateway.apply(message.value);
      if (this.appliesRoutes && this.gateway.gateway !== "" && !message.value.more) this.reportGateway();
    }
    if (message?.$case === "podMetrics") {
      this.metricsRequests = message.value.pods;
      this.measuresAllPods = message.value.usageOfAllPods;
    }
    if (message?.$case === "imagePrefetches") {
      this.prefetches = message.value.images;
      this.reportPulls();
    }
    if (message?.$case === "certificateRenewal") this.renewalsAsked += 1;
    if (message?.$case === "identityTokens") this.identityTokens.push(message.value.byPodUid);
    if (message?.$case === "session") {
      if (this.onSession === undefined) this.sessions.push(message.value);
      else this.onSession(message.value);
    }
  }

  #assign(pods: readonly PodAssignment[]): void {
    for (const pod of pods) {
      this.assignments.set(pod.uid, pod);
      const status = pod.stopping ? this.onStopping(pod) : this.behaviour(pod);
      if (status !== undefined) this.report(status);
    }
  }
}

/** Joins over the wire. Rejects with the coordinator's error. */
export async function join(
  world: Pick<World, "address" | "caPem">,
  token: string,
  nodeName: string,
  other: {
    readonly key?: { readonly keyPem: string; readonly csrPem: string };
    readonly tokenId?: string;
  } = {},
): Promise<{ readonly keyPem: string; readonly response: JoinResponse }> {
  const { id, secret } = parseJoinToken(token);
  const { keyPem, csrPem } = other.key ?? (await createKeyAndCsr());
  const client = new EnrollmentServiceClient(world.address, channelCredentials({ caPem: world.caPem }));
  const request = { tokenId: other.tokenId ?? id, tokenSecret: secret, csr: Buffer.from(csrPem), nodeName };
  try {
    const response = await new Promise<JoinResponse>((resolve, reject) => {
      client.join(request, new Metadata(), (error, answer) =>
        error === null ? resolve(answer) : reject(error),
      );
    });
    return { keyPem, response };
  } finally {
    client.close();
  }
}

const EMPTY_HELLO = {
  agentVersion: "0.0.0",
  bootId: "boot",
  clusterId: "",
  assignmentRevision: 0n,
  pods: [],
};
const EMPTY_REPORT = {
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
};
