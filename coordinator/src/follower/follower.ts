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
import { ConnectedNodes } from "./connected-nodes.ts";
import type { FollowedView } from "./followed-view.ts";
import { openFollowerHttp } from "./follower-http.ts";
import { createFollowerMetrics } from "./follower-metrics.ts";
import { forward } from "./forward.ts";
import { LeaderLink } from "./leader-link.ts";
import { type OwnMethods, ownMethods } from "./own-methods.ts";
import { BEHIND_MS, followerReadiness } from "./readiness.ts";
import { showStoredHealth } from "./stored-health.ts";

export interface FollowerOptions {
  readonly config: Config;
  readonly store: FollowedStore;
  /** This coordinator's id. */
  readonly self: string;
  readonly authority: Authority;
  /** Default: the authority is not replaced. */
  readonly authorityRoll?: AuthorityRoll | undefined;
  readonly vault: Vault;
  /** The public keys of pods' identity tokens. */
  readonly issuer: Pick<IdentityIssuer, "issuer" | "publicKeys">;
  /** The record of calls that are served here. Default: none. */
  readonly audit?: AuditLog;
  /** Services of optional parts of the coordinator that leads. */
  readonly further: readonly ServiceDefinition[];
  /** Kinds of workloads whose pods an optional part creates. */
  readonly foreignKinds: readonly string[];
  /** The addresses of this host, for the certificate of the gRPC port. Default: none. */
  readonly hostAddresses?: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  /** The newest lines of the log, for support bundles. Default: none are kept. */
  readonly recentLog?: RecentLines | undefined;
  readonly onFatal: (error: unknown) => void;
}

/** A coordinator that follows. Its view, its ports and what is open on them stay when it becomes the leader. */
export interface Follower extends FollowedView {
  readonly port: GrpcPort;
  readonly address: HostPort;
  readonly http: HttpServer;
  readonly plain: PlainDestination | undefined;
  /** Aborted when the coordinator stops. */
  readonly stopping: AbortController;
  /** Takes in the coordinator that leads. Undefined: none does. */
  observe(leader: Leader | undefined): void;
  /** Returns what this coordinator does in one line. */
  status(): string;
  /**
   * Ends what a coordinator does only while another one leads. The caller adds its own services to the port before it waits for
   * anything: there are none in between.
   */
  handOver(): void;
  /** Ends everything. */
  close(): Promise<void>;
}

/** Time for clients to take in the end of their streams. */
const CLOSE_GRACE_MS = 1_000;
/** The view has what was written within milliseconds, unless etcd answers the leader only. */
const REACHED_MS = 1_000;

/** Serves while another coordinator leads: what it can from its own view of the store. All other calls are passed on to the leader. */
export async function startFollower(options: FollowerOptions): Promise<Follower> {
  const { config, store, authority, clock, log, self, onFatal } = options;
  const defer = (run: () => void): void => void setImmediate(run);
  const over = new AbortController();
  // Unreadable records are in the log, and the leader records them as events.
  const noEvents = { record: () => {} };
  const { state, following } = await openView({ store, log, onFatal }, noEvents, over.signal);
  const stopHealth = showHealth(options, state, defer);
  const directory = openDirectory(state, { config, defer });
  const stopWatching = watchStore({ store, clock, onBroken: onFatal });
  const link = new LeaderLink({ authority, self, clock });
  const stopping = new AbortController();
  const opened = await openServing(options, { state, link, stopping: stopping.signal });
  const { port, metrics, audit, tokensUsed, serving, calls } = opened;
  const leaving = new AbortController();
  const limits = eventLimits(config);
  const events = await FollowedEvents.open({ store, limits, clock, onFatal }, over.signal);
  const behindMs = (): number => store.behindMs;
  const isBehind = (): boolean => behindMs() > BEHIND_MS;
  const nodes = new ConnectedNodes();
  const own = ownMethods({ ...options, state, events, isBehind, nodes }, serving);
  const parts = { port, metrics, link, directory, serving, own, state, nodes, leaving: leaving.signal };
  const definitions = addFollowerServices(options, parts);
  const place = ownPlace(options);
  let isProven = false;
  const stopReporting = reportToLeader({
    ...{ own: place, store, clock, log, tokensUsed, authorityPins: trustedPins(options, link) },
    client: (signal) => link.client(signal),
    onAnswer: ({ decides }) => {
      isProven ||= decides;
    },
  });
  const readiness = () => followerReadiness(store, link.leader);
  const http = await openFollowerHttp(options, {
    ...{ port, metrics, readiness, events, behindMs, handlers: own.handlers, stopping: stopping.signal },
    calls,
    client: (signal, patienceMs) => link.client(signal, patienceMs),
    reached: (revision) => reached(state, revision, clock),
  });
  port.observer.material = (material) => http.reload(material);
  const plain = await openPlain(options, directory, serving);
  const address = await port.listen();
  log.info({ event: "coordinator-follows", grpc: address, revision: store.revision });
  let isFollowing = true;
  const leave = (): void => {
    isFollowing = false;
    stopHealth();
    stopWatching();
    stopReporting();
  };
  return {
    ...{ state, directory, port, address, http, plain, stopping },
    get isProven() {
      return isProven;
    },
    observe: (leader) => observe(leader, link, log),
    status: () => statusOf(link),
    handOver: () => {
      leave();
      for (const definition of definitions) port.server.removeService(definition);
      leaving.abort();
      // Calls that wait for a leader are served by this coordinator's own port.
      link.observe({ holder: self, ...place });
    },
    close: async () => {
      stopping.abort();
      const leads = !isFollowing;
      if (isFollowing) leave();
      leaving.abort();
      link.close();
      const ports = leads ? [] : [port.close(CLOSE_GRACE_MS), plain?.close(CLOSE_GRACE_MS), http.close()];
      await Promise.all(ports);
      over.abort();
      await following;
      own.close();
      directory.close();
      if (!leads) await audit.close();
    },
  };
}

/** Returns a function for the pins of the authorities that this coordinator trusts. Called once the port is open, which trusts them first. */
function trustedPins({ authority, authorityRoll }: FollowerOptions, link: LeaderLink) {
  const pins = (): readonly string[] => authorityRoll?.roots().map(({ pin }) => pin) ?? [authority.pin];
  let trusted = pins();
  authorityRoll?.onChange(() => {
    trusted = pins();
    link.renew();
  });
  return () => trusted;
}

function observe(leader: Leader | undefined, link: LeaderLink, log: Log): void {
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

/** Opens the port, and what observes the calls on it. */
async function openServing(
  options: FollowerOptions,
  parts: { readonly state: ClusterView; readonly link: LeaderLink; readonly stopping: AbortSignal },
) {
  const { state, link, stopping } = parts;
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
  return { port, metrics, audit, tokensUsed, serving, calls };
}

/** Returns the services that were added. */
function addFollowerServices(
  options: FollowerOptions,
  parts: {
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
  const { port, link, directory, serving, leaving, own, state, nodes } = parts;
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
        return caller?.kind === "node" ? nodes.add(caller.nodeId, call) : undefined;
      },
      reached: (revision) => reached(state, revision, clock),
    });
  const all = [...ownDefinitions, ...forwarded];
  const health = {
    health: () => ({ status: followerReadiness(store, link.leader).ready ? "ok" : "behind" }),
  };
  addStandardServices(server, all, { store: health, clock }, serving);
  addDestination(server, { directory, authorize: true }, serving);
  serve(server, FollowerServiceService, supportOf(options, parts), serving);
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

/** Resolves once the view has the revision, or after a second: the caller's next read is then older than its write. */
async function reached(state: ClusterView, revision: number, { schedule }: Clock): Promise<void> {
  const late = Promise.withResolvers<void>();
  const cancel = schedule(REACHED_MS, late.resolve);
  await Promise.race([state.reached(revision), late.promise]);
  cancel();
}

function openPlain({ config, clock }: FollowerOptions, directory: Directory, serving: ServeOptions) {
  if (config.destination === "off") return undefined;
  return startPlainDestination(
    hostPort(config.destination.listen),
    { directory, authorize: false },
    { ...serving, schedule: clock.schedule },
  );
}
