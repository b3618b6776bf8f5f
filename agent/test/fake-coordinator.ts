import { randomBytes, randomUUID } from "node:crypto";
import { CertificateAuthority } from "@forage/identity/ca";
import { type JoinTokenRecord, mintJoinToken } from "@forage/identity/join-token";
import { TlsServer } from "@forage/identity/tls-server";
import {
  AgentServiceService,
  type AssignmentDelta,
  type ClaimRef,
  type ConnectRequest,
  type ConnectResponse,
  EnrollmentServiceService,
  type GatewayStatus,
  type GatewayUpdate,
  type Hello,
  type NodeReport,
  type PodAssignment,
  type PodMetricsRequests,
  type PodMetricsSample,
  PodPhase,
  type PodStatus,
  type ServeRequest,
  type ServeResponse,
  type SessionRequest,
} from "@forage/proto/forage/agent/v1/agent";
import {
  type handleBidiStreamingCall,
  type handleUnaryCall,
  Server,
  type ServerDuplexStream,
  status,
} from "@grpc/grpc-js";
import { type JoinRequest, joinNode } from "./joining-node.ts";
import { renewingNode } from "./renewing-node.ts";

export interface FakeCoordinatorOptions {
  readonly clusterId?: string;
  readonly authority?: CertificateAuthority;
  readonly port?: number;
  readonly certificateLifetimeMs?: number;
  /** The name in the server's certificate. Clients reject any other. */
  readonly serverName?: string;
}

type AgentStream = ServerDuplexStream<ConnectRequest, ConnectResponse>;

// The coordinator's default.
const HEARTBEAT_MS = 2_500;

/** A coordinator for the agent's protocol, whose assignments the test sets. */
export class FakeCoordinator {
  readonly authority: CertificateAuthority;
  readonly clusterId: string;
  readonly hellos: Hello[] = [];
  readonly statuses = new Map<string, PodStatus>();
  /** All received statuses in order. */
  readonly history: PodStatus[] = [];
  readonly joins: string[] = [];
  /** The coordinators' addresses that it sends. */
  coordinators: { addresses: string[] } | undefined;
  /** The newest report. */
  node: NodeReport | undefined;
  /** The number of node reports, excluding those in hellos. */
  nodeReports = 0;
  /** The node's reports about its gateway, in order. */
  readonly gateway: GatewayStatus[] = [];
  readonly claimsRemoved: ClaimRef[] = [];
  /** All samples, in the order of their arrival. */
  readonly metrics: PodMetricsSample[] = [];
  renewals = 0;
  /** Whether renewals are rejected, as for a certificate that expired too long ago. */
  refusesRenewals = false;
  heartbeats = 0;
  /** Whether it knows nothing of answers to heartbeats. */
  isOfEarlierVersion = false;
  /** Whether it answers heartbeats that request it. */
  answersHeartbeats = true;
  lastRevision = 0n;
  revision = 100n;
  /** Called for each hello, before the welcome is sent. */
  onHello: () => void = () => {};
  port = 0;
  readonly #options: FakeCoordinatorOptions;
  readonly #desired = new Map<string, PodAssignment>();
  readonly #tokens = new Map<string, JoinTokenRecord>();
  readonly #streams = new Set<AgentStream>();
  readonly #sessions = new Map<string, FakeSession>();
  readonly #server = new Server();
  #tls: TlsServer | undefined;

  private constructor(authority: CertificateAuthority, options: FakeCoordinatorOptions) {
    this.authority = authority;
    this.clusterId = options.clusterId ?? "test-cluster";
    this.#options = options;
  }

  static async start(options: FakeCoordinatorOptions = {}): Promise<FakeCoordinator> {
    const authority =
      options.authority ?? (await CertificateAuthority.create("test", { nowMs: Date.now, randomBytes }));
    const coordinator = new FakeCoordinator(authority, options);
    await coordinator.#listen();
    return coordinator;
  }

  /** Returns the coordinator that replaces this one after `close`, with the same port, authority and assignments. */
  async successor(): Promise<FakeCoordinator> {
    const { authority, port } = this;
    const next = new FakeCoordinator(authority, { ...this.#options, port });
    next.revision = this.revision;
    for (const [uid, pod] of this.#desired) next.#desired.set(uid, pod);
    await next.#listen();
    return next;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  get connections(): number {
    return this.#streams.size;
  }

  mintToken(change: Partial<JoinTokenRecord> = {}): string {
    const { token, record } = mintJoinToken({ pin: this.authority.pin, nowMs: Date.now(), randomBytes });
    this.#tokens.set(record.id, { ...record, ...change });
    return token;
  }

  assign(...pods: readonly PodAssignment[]): void {
    for (const pod of pods) this.#desired.set(pod.uid, pod);
    this.send(pods, []);
  }

  stop(...uids: readonly string[]): void {
    const stopping = uids
      .flatMap((uid) => this.#desired.get(uid) ?? [])
      .map((pod) => ({ ...pod, stopping: true }));
    this.assign(...stopping);
  }

  forget(...uids: readonly string[]): void {
    for (const uid of uids) {
      this.#desired.delete(uid);
      this.statuses.delete(uid);
    }
    this.send([], uids);
  }

  /** Sends a change with the next revision, or with a given one. */
  send(upserts: readonly PodAssignment[], removals: readonly string[], revision?: bigint): void {
    this.revision = revision ?? this.revision + 1n;
    this.sendDelta({ upserts: [...upserts], removals: [...removals] });
  }

  /** Sends a delta with the current revision. */
  sendDelta(change: Partial<AssignmentDelta>): void {
    const value = {
      ...{ revision: this.revision, upserts: [], removals: [], claimRemovals: [], more: false },
      ...change,
    };
    for (const stream of this.#streams) stream.write({ message: { $case: "delta", value } });
  }

  /** Sends newer tokens by pod, which expire at this time. */
  sendTokens(tokens: Readonly<Record<string, string>>, expiresAtSeconds: number): void {
    const expiresAt = { seconds: BigInt(expiresAtSeconds), nanos: 0 };
    const byPodUid = Object.fromEntries(
      Object.entries(tokens).map(([uid, token]) => [uid, { token, expiresAt }]),
    );
    const message = { $case: "identityTokens", value: { byPodUid } } as const;
    for (const stream of this.#streams) stream.write({ message });
  }

  /** Sends the node's gateway configuration. */
  sendGateway(value: GatewayUpdate): void {
    for (const stream of this.#streams) stream.write({ message: { $case: "gateway", value } });
  }

  /** Sends a message. Undefined: a message without content for this version. */
  say(message: ConnectResponse["message"]): void {
    for (const stream of this.#streams) stream.write({ message });
  }

  /** Requests metrics of pods. */
  askMetrics(value: PodMetricsRequests): void {
    for (const stream of this.#streams) stream.write({ message: { $case: "podMetrics", value } });
  }

  /** Requests a session from the agent and returns the frames of both ends. */
  openSession(request: Omit<SessionRequest, "sessionId">): FakeSession {
    const session = new FakeSession();
    const sessionId = randomUUID();
    this.#sessions.set(sessionId, session);
    for (const stream of this.#streams) {
      stream.write({ message: { $case: "session", value: { ...request, sessionId } } });
    }
    return session;
  }

  /** Breaks all connections, as the death of the process would. */
  async close(): Promise<void> {
    this.#server.forceShutdown();
    await this.#tls?.close();
    this.#streams.clear();
  }

  async #listen(): Promise<void> {
    const issued = await this.#issueServer();
    this.#tls = new TlsServer({
      material: { chainPem: issued.chainPem, keyPem: issued.keyPem, clientCaPem: this.authority.certPem },
      nowMs: Date.now,
    });
    this.#server.addService(EnrollmentServiceService, { join: this.#join });
    this.#server.addService(AgentServiceService, {
      connect: this.#connect,
      renew: this.#renew,
      serve: this.#serve,
    });
    ({ port: this.port } = await this.#tls.listen(this.#server, {
      host: "127.0.0.1",
      port: this.#options.port ?? 0,
    }));
  }

  async #issueServer() {
    const { serverName } = this.#options;
    const names = serverName
      ? { dnsNames: [serverName], ipAddresses: [] }
      : { dnsNames: ["localhost"], ipAddresses: ["127.0.0.1"] };
    return this.authority.issueServer(names);
  }

  readonly #join: handleUnaryCall<
    JoinRequest,
    { certificatePem: string; caBundlePem: string; clusterId: string }
  > = (call, callback) => {
    this.joins.push(call.request.nodeName);
    const { certificateLifetimeMs } = this.#options;
    joinNode(call.request, this.authority, this.#tokens, certificateLifetimeMs).then(
      (certificatePem) =>
        callback(null, { certificatePem, caBundlePem: this.authority.certPem, clusterId: this.clusterId }),
      (error) => callback(error),
    );
  };

  readonly #renew: handleUnaryCall<{ csr: Buffer }, { certificatePem: string; caBundlePem: string }> = (
    call,
    callback,
  ) => {
    const peer = this.#tls?.peerOf(call);
    const node = this.refusesRenewals ? undefined : renewingNode(peer);
    if (node === undefined) {
      callback(Object.assign(new Error("only nodes renew"), { code: status.PERMISSION_DENIED }));
      return;
    }
    this.renewals += 1;
    this.authority.issueNode(node, call.request.csr).then(
      (issued) => callback(null, { certificatePem: issued.chainPem, caBundlePem: this.authority.certPem }),
      (error) => callback(error),
    );
  };

  readonly #connect: handleBidiStreamingCall<ConnectRequest, ConnectResponse> = (stream) => {
    if (this.#tls?.peerOf(stream).type !== "authenticated") {
      stream.emit("error", Object.assign(new Error("who are you?"), { code: status.UNAUTHENTICATED }));
      return;
    }
    stream.on("error", () => this.#streams.delete(stream));
    stream.on("cancelled", () => this.#streams.delete(stream));
    stream.on("end", () => {
      this.#streams.delete(stream);
      stream.end();
    });
    stream.on("data", ({ message }: ConnectRequest) => this.#take(message, stream));
  };

  #take(message: ConnectRequest["message"], stream: AgentStream): void {
    switch (message?.$case) {
      case "hello":
        this.#welcome(message.value, stream);
        return;
      case "heartbeat":
        this.heartbeats += 1;
        this.lastRevision = message.value.assignmentRevision;
        if (message.value.answerRequested && this.answersHeartbeats)
          stream.write({ message: { $case: "heartbeatAnswer", value: { nextMs: 0 } } });
        return;
      case "podStatuses":
        this.#note(message.value.pods);
        return;
      case "nodeReport":
        this.node = message.value;
        this.nodeReports += 1;
        return;
      case "podMetrics":
        this.metrics.push(...message.value.pods);
        return;
      case "gateway":
        this.gateway.push(message.value);
        return;
      case "claimsRemoved":
        this.claimsRemoved.push(...message.value.claims);
        return;
      default:
    }
  }

  #welcome(hello: Hello, stream: AgentStream): void {
    this.hellos.push(hello);
    this.node = hello.node;
    this.onHello();
    const { clusterId, revision } = this;
    const { coordinators, isOfEarlierVersion } = this;
    const value = {
      ...{ clusterId, heartbeatIntervalMs: HEARTBEAT_MS, coordinators },
      answersHeartbeats: !isOfEarlierVersion,
    };
    stream.write({ message: { $case: "welcome", value } });
    stream.write({
      message: {
        $case: "snapshot",
        value: {
          revision,
          pods: [...this.#desired.values()],
          more: false,
          claimRemovals: [],
          lineage: `signed/${revision}`,
        },
      },
    });
    this.#streams.add(stream);
    this.#note(hello.pods);
  }

  /** Removes removed pods and confirms that to the node, as the coordinator does. */
  #note(pods: readonly PodStatus[]): void {
    const removed = pods.filter((it) => it.phase === PodPhase.REMOVED && this.#desired.has(it.uid));
    for (const pod of pods) {
      if (!this.#desired.has(pod.uid)) continue;
      this.statuses.set(pod.uid, pod);
      this.history.push(pod);
    }
    if (removed.length > 0) this.forget(...removed.map((it) => it.uid));
  }

  readonly #serve: handleBidiStreamingCall<ServeRequest, ServeResponse> = (stream) => {
    stream.on("error", () => undefined);
    let session: FakeSession | undefined;
    stream.on("data", ({ frame }: ServeRequest) => {
      if (frame?.$case === "sessionId") {
        session = this.#sessions.get(frame.value);
        session?.attach(stream);
      } else if (frame !== undefined) session?.receive(frame);
    });
    stream.on("end", () => stream.end());
  };
}

/** The client's end of a log or exec session. */
export class FakeSession {
  stdout = "";
  stderr = "";
  readonly ended: Promise<{ exitCode: number; error: string }>;
  readonly #end = Promise.withResolvers<{ exitCode: number; error: string }>();
  readonly #opened = Promise.withResolvers<ServerDuplexStream<ServeRequest, ServeResponse>>();

  constructor() {
    this.ended = this.#end.promise;
  }

  attach(stream: ServerDuplexStream<ServeRequest, ServeResponse>): void {
    this.#opened.resolve(stream);
  }

  receive(frame: NonNullable<ServeRequest["frame"]>): void {
    if (frame.$case === "stdout") this.stdout += frame.value.toString();
    if (frame.$case === "stderr") this.stderr += frame.value.toString();
    if (frame.$case === "end") this.#end.resolve(frame.value);
  }

  async write(text: string): Promise<void> {
    (await this.#opened.promise).write({ frame: { $case: "stdin", value: Buffer.from(text) } });
  }

  async endInput(): Promise<void> {
    (await this.#opened.promise).write({ frame: { $case: "stdinClosed", value: true } });
  }

  /** Disconnects the client. */
  async leave(): Promise<void> {
    (await this.#opened.promise).end();
  }
}
