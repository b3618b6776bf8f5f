import type { Log } from "@forage/common/log";
import type { RecentLines } from "@forage/common/recent-lines";
import { FollowerServiceService } from "@forage/proto/forage/coordinator/v1/coordinator";
import type { ServiceDefinition } from "@grpc/grpc-js";
import manifest from "../../package.json" with { type: "json" };
import { type AuditLog, NO_AUDIT_LOG } from "../audit/audit-log.ts";
import type { Authority, AuthorityRoll } from "../authority/authority.ts";
import { type Config, type HostPort, hostPort } from "../config.ts";
import { watchStore } from "../control/store-watchdog.ts";
import type { Directory } from "../destination/directory.ts";
import { openDirectory } from "../destination/open-directory.ts";
import { type PlainDestination, startPlainDestination } from "../destination/plain-listener.ts";
import { eventLimits } from "../events/configured-limits.ts";
import { FollowedEvents } from "../events/followed-events.ts";
import { type GrpcPort, openGrpcPort, type PortObserver } from "../grpc-port.ts";
import type { Metrics } from "../http/metrics.ts";
import { createPassCounts, type PassCounts, passMetrics } from "../http/passed/pass-counts.ts";
import type { HttpServer } from "../http/server.ts";
import { SharedAgentService } from "../link/agent-service.ts";
import { nodeLimits } from "../link/node-limits.ts";
import type { IdentityIssuer } from "../objects/identity-issuer.ts";
import type { Vault } from "../objects/vault.ts";
import { clusterMetrics } from "../peers/cluster-metrics.ts";
import { ownPlace } from "../peers/own-place.ts";
import { reportToLeader } from "../peers/report-to-leader.ts";
import { TokensUsed } from "../peers/tokens-used.ts";
import { CallAudit } from "../rpc/call-audit.ts";
import { type ServeOptions, serve } from "../rpc/serve.ts";
import {
  addDestination,
  addStandardServices,
  leaderDefinitions,
  ownDefinitions,
  servedDefinitions,
} from "../services.ts";
import { servingOf } from "../serving.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import { openView } from "../state/open-view.ts";
import type { FollowedStore, Leader } from "../store/index.ts";
import { followerSupport } from "../support/follower-support.ts";
import type { Clock } from "../time/clock.ts";
import type { AccessPorts } from "../workspaces/access/access-ports.ts";
import { ConnectedNodes } from "./connected-nodes.ts";
import { type FollowedAccess, openFollowedAccess } from "./followed-access.ts";
import type { FollowedView } from "./followed-view.ts";
import { openFollowerHttp } from "./follower-http.ts";
import { createFollowerMetrics } from "./follower-metrics.ts";
import { forward } from "./forward.ts";
import { LeaderLink } from "./leader-link.ts";
import { LeaderProof } from "./leader-proof.ts";
import { type OwnMethods, ownMethods } from "./own-methods.ts";
import { BEHIND_MS, followerReadiness } from "./readiness.ts";
import { showStoredHealth } from "./stored-health.ts";

export interface FollowerOptions {
  readonly config: Config;
  readonly store: FollowedStore;
  /** The id of this coordinator. */
  readonly self: string;
  readonly authority: Authority;
  /** The replacement of the authority. Default: the authority is not replaced. */
  readonly authorityRoll?: AuthorityRoll | undefined;
  readonly vault: Vault;
  /** The public keys of pods' identity tokens. */
  readonly issuer: Pick<IdentityIssuer, "issuer" | "publicKeys">;
  /** The audit log of calls that are served here. Default: none. */
  readonly audit?: AuditLog;
  /** The services of optional components of the leader. */
  readonly further: readonly ServiceDefinition[];
  /** The kinds of workloads whose pods an optional component creates. */
  readonly foreignKinds: readonly string[];
  /** The addresses of this host, for the certificate of the gRPC port. Default: none. */
  readonly hostAddresses?: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  /** The newest lines of the log, for support bundles. Default: none are kept. */
  readonly recentLog?: RecentLines | undefined;
  readonly onFatal: (error: unknown) => void;
}

/**
 * A coordinator that follows. Its view, its ports and their connections stay when it becomes the
 * leader.
 */
export interface Follower extends FollowedView {
  readonly port: GrpcPort;
  readonly address: HostPort;
  readonly http: HttpServer;
  readonly plain: PlainDestination | undefined;
  /** The ports of workspaces. */
  readonly access: AccessPorts;
  /** Aborts when the coordinator stops. */
  readonly stopping: AbortController;
  /** Sets the leader to which calls are passed on; undefined if there is none. */
  observe(leader: Leader | undefined): void;
  /** Returns the coordinator's state in one line. */
  status(): string;
  /**
   * Ends everything that a coordinator does only as a follower. The caller must add its own
   * services to the port without awaiting anything before, because the port has none in the
   * meantime.
   */
  handOver(): void;
  /** Ends everything. */
  close(): Promise<void>;
}

/** The time for clients to process the end of their streams. */
const CLOSE_GRACE_MS = 1_000;
/**
 * The longest wait until the view contains a write. It usually takes milliseconds, unless only the
 * leader can reach etcd.
 */
const REACHED_MS = 1_000;

/**
 * Starts a follower. It serves calls that need only its own view of the store, and passes all other
 * calls on to the leader.
 */
export async function startFollower(options: FollowerOptions): Promise<Follower> {
  const { config, store, authority, clock, log, self, onFatal } = options;
  const defer = (run: () => void): void => void setImmediate(run);
  const over = new AbortController();
  // Unreadable records are logged, and the leader records them as events.
  const noEvents = { record: () => {} };
  const { state, following } = await openView({ store, log, onFatal }, noEvents, over.signal);
  const stopHealth = showHealth(options, state, defer);
  const directory = openDirectory(state, { config, defer });
  const stopWatching = watchStore({ store, clock, onBroken: onFatal });
  const link = new LeaderLink({ authority, self, clock });
  const stopping = new AbortController();
  const opened = await openServing(options, { state, link, stopping: stopping.signal });
  const { port, metrics, audit, tokensUsed, serving, calls, passCounts } = opened;
  const leaving = new AbortController();
  const limits = eventLimits(config);
  const events = await FollowedEvents.open({ store, limits, clock, onFatal }, over.signal);
  const behindMs = (): number => store.behindMs;
  const nodes = new ConnectedNodes();
  const isBehind = (): boolean => behindMs() > BEHIND_MS;
  const own = ownMethods({ ...options, state, events, isBehind, nodes }, serving);
  const components = { port, metrics, link, directory, serving, own, state, nodes, leaving: leaving.signal };
  const definitions = addFollowerServices(options, components);
  const place = ownPlace(options);
  const proof = new LeaderProof();
  const stopReporting = reportToLeader({
    ...{ own: place, store, clock, log, tokensUsed, authorityPins: trustedPins(options, link) },
    client: (signal) => link.client(signal),
    onAnswer: proof.observe,
  });
  const readiness = () => followerReadiness(store, link.leader);
  const http = await openFollowerHttp(options, {
    ...{ port, metrics, readiness, events, behindMs, handlers: own.handlers, stopping: stopping.signal },
    ...{ calls, passCounts },
    client: (signal, patienceMs) => link.client(signal, patienceMs),
    reached: (revision) => reached(state, revision, clock),
  });
  port.observer.material = (material) => http.reload(material);
  const { plain, access, closeFurther } = await openFurtherPorts(options, { ...components, passCounts });
  const address = await port.listen();
  log.info({ event: "coordinator-follows", grpc: address, revision: store.revision });
  let isFollowing = true;
  const leave = (): void => {
    isFollowing = false;
    for (const stop of [stopHealth, stopWatching, stopReporting, access.end]) stop();
  };
  return {
    ...{ state, directory, port, address, http, plain, stopping, access: access.ports },
    get isProven() {
      return proof.holds;
    },
    observe: (leader) => observe(leader, { link, access }, log),
    status: () => statusOf(link),
    handOver: () => {
      leave();
      for (const definition of definitions) port.server.removeService(definition);
      leaving.abort();
      // Calls that wait for a leader are then passed on to this coordinator's own port.
      link.observe({ holder: self, ...place });
    },
    close: async () => {
      stopping.abort();
      const leads = !isFollowing;
      if (isFollowing) leave();
      leaving.abort();
      link.close();
      const ports = leads ? [] : [port.close(CLOSE_GRACE_MS), http.close(), closeFurther()];
      await Promise.all(ports);
      over.abort();
      await following;
      own.close();
      directory.close();
      if (!leads) await audit.close();
    },
  };
}

/**
 * Returns a function for the pins of the authorities that this coordinator trusts. It must be
 * called once the port is open, which trusts them first.
 */
function trustedPins({ authority, authorityRoll }: FollowerOptions, link: LeaderLink) {
  const pins = (): readonly string[] => authorityRoll?.roots().map(({ pin }) => pin) ?? [authority.pin];
  let trusted = pins();
  authorityRoll?.onChange(() => {
    trusted = pins();
    link.renew();
  });
  return () => trusted;
}

function observe(
  leader: Leader | undefined,
  { link, access }: { readonly link: LeaderLink; readonly access: FollowedAccess },
  log: Log,
): void {
  access.observe(leader);
  const { name = "none", addresses } = leader ?? {};
  if (leader?.holder !== link.leader?.holder) log.info({ event: "leader-seen", leader: name, addresses });
  link.observe(leader);
}

function showHealth(
  { config, clock }: FollowerOptions,
  state: ClusterView,
  defer: (run: () => void) => void,
): () => void {
  const { recoveryMs } = nodeLimits(config);
  return showStoredHealth({ state, monotonicMs: clock.monotonicMs, recoveryMs, defer });
}

/** Opens the port and everything that observes its calls. */
async function openServing(
  options: FollowerOptions,
  components: { readonly state: ClusterView; readonly link: LeaderLink; readonly stopping: AbortSignal },
) {
  const { state, link, stopping } = components;
  const { store, log, clock } = options;
  const { monotonicMs } = clock;
  const port = await openGrpcPort({ ...options, state });
  const metrics = createFollowerMetrics({
    behindMs: () => store.behindMs,
    revision: () => store.revision,
    connections: () => port.stats(),
  });
  const { members } = store;
  metrics.add((registers) => clusterMetrics({ leader: () => link.leader, members }, registers));
  const passCounts = createPassCounts();
  metrics.add((registers) => passMetrics(passCounts, registers));
  const audit = new CallAudit({ log: options.audit ?? NO_AUDIT_LOG, monotonicMs });
  const tokensUsed = new TokensUsed();
  Object.assign(port.observer, {
    call: metrics.observeCall,
    cut: (why: string) => metrics.observeCut("grpc", why),
    refused: (...refusal: Parameters<CallAudit["refused"]>) => audit.refused(...refusal),
    tokenUsed: (id: string) => tokensUsed.used(id),
  } satisfies PortObserver);
  const { serving, calls } = servingOf(port, {
    ...{ config: options.config, log, audit, monotonicMs, observe: metrics.observeCall, stopping },
    silentMs: () => store.behindMs,
  });
  return { port, metrics, audit, tokensUsed, serving, calls, passCounts };
}

/** Adds the services of a follower, and returns them. */
function addFollowerServices(
  options: FollowerOptions,
  components: {
    readonly port: GrpcPort;
    readonly metrics: Metrics;
    readonly link: LeaderLink;
    readonly directory: Directory;
    readonly serving: ServeOptions;
    readonly own: OwnMethods;
    readonly state: ClusterView;
    readonly nodes: ConnectedNodes;
    readonly leaving: AbortSignal;
  },
): readonly ServiceDefinition[] {
  const { store, clock, log, further } = options;
  const { port, link, directory, serving, leaving, own, state, nodes } = components;
  const { server, identify, peerOf } = port;
  const notForwarded = [...ownDefinitions, ...leaderDefinitions];
  const forwarded = [...servedDefinitions, ...further].filter((it) => !notForwarded.includes(it));
  const { monotonicMs, observe } = serving;
  for (const definition of forwarded)
    forward(server, definition, {
      ...{ identify, peerOf, log, monotonicMs, stopping: leaving },
      ...(observe && { observe }),
      client: (signal, patienceMs) => link.client(signal, patienceMs),
      own: own.methods,
      behindMs: () => store.behindMs,
      onPassed: (path, call) => {
        const caller = path === SharedAgentService.connect.path ? identify(call) : undefined;
        return caller?.type === "node" ? nodes.add(caller.nodeId, call) : undefined;
      },
      reached: (revision) => reached(state, revision, clock),
    });
  const all = [...ownDefinitions, ...forwarded];
  const health = {
    health: () => ({ status: followerReadiness(store, link.leader).ready ? "ok" : "behind" }),
  };
  addStandardServices(server, all, { store: health, clock }, serving);
  addDestination(server, { directory, authorize: true }, serving);
  serve(server, FollowerServiceService, supportOf(options, components), serving);
  return [...all, FollowerServiceService];
}

function supportOf(
  { config, recentLog, clock, store }: FollowerOptions,
  { metrics, link }: { readonly metrics: Metrics; readonly link: LeaderLink },
) {
  return followerSupport({
    ...{ config, recentLog, version: manifest.version, startedMs: clock.nowMs(), nowMs: clock.nowMs },
    metrics: () => metrics.render(),
    status: () => statusOf(link),
    storeState: () => ({ revision: store.revision, behindMs: Math.round(store.behindMs) }),
  });
}

function statusOf(link: LeaderLink): string {
  return `following: ${link.leader?.name ?? "another coordinator"} leads`;
}

/**
 * Resolves once the view contains the revision, or after a second. In the latter case, the caller's
 * next read may not contain its write.
 */
async function reached(state: ClusterView, revision: number, { schedule }: Clock): Promise<void> {
  const late = Promise.withResolvers<void>();
  const cancel = schedule(REACHED_MS, late.resolve);
  await Promise.race([state.reached(revision), late.promise]);
  cancel();
}

/** Opens the optional ports. */
async function openFurtherPorts(
  options: FollowerOptions,
  components: {
    readonly directory: Directory;
    readonly serving: ServeOptions;
    readonly link: LeaderLink;
    readonly passCounts: PassCounts;
  },
) {
  const { config, clock, log } = options;
  const { directory, serving, link, passCounts } = components;
  const plain = await openPlain(options, directory, serving);
  const client = (signal: AbortSignal) => link.client(signal);
  const access = await openFollowedAccess({ settings: config.workspaces, clock, log, client, passCounts });
  const closeFurther = () => Promise.all([plain?.close(CLOSE_GRACE_MS), access.close()]);
  return { plain, access, closeFurther };
}

function openPlain({ config, clock }: FollowerOptions, directory: Directory, serving: ServeOptions) {
  if (config.destination === "off") return undefined;
  return startPlainDestination(
    hostPort(config.destination.listen),
    { directory, authorize: false },
    { ...serving, schedule: clock.schedule },
  );
}
