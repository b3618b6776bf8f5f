import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { Log } from "@forage/common/log";
import type { RecentLines } from "@forage/common/recent-lines";
import type { Registry } from "prom-client";
import manifest from "../package.json" with { type: "json" };
import { type AuditLog, NO_AUDIT_LOG } from "./audit/audit-log.ts";
import type { Authority, AuthorityRoll } from "./authority/authority.ts";
import type { Backups } from "./backups/open-backups.ts";
import { openIssuer } from "./certificates/open-issuer.ts";
import { type Config, type HostPort, hostPort } from "./config.ts";
import { sweepExpiredTokens } from "./control/expired-tokens.ts";
import { watchStore } from "./control/store-watchdog.ts";
import { type Core, startCore } from "./core.ts";
import { StoredSessions } from "./dashboard/stored-sessions.ts";
import { startPlainDestination } from "./destination/plain-listener.ts";
import type { Follower } from "./follower/follower.ts";
import { type GrpcPort, openGrpcPort, type PortObserver, portNames } from "./grpc-port.ts";
import { createMetrics, type Metrics } from "./http/metrics.ts";
import { httpNamesOf } from "./http/pod-domain.ts";
import { type HttpContent, type HttpServer, startHttpServer } from "./http/server.ts";
import { type HttpOptions, httpRoutes } from "./http-routes.ts";
import { serverMaterial } from "./identity.ts";
import { BuiltInServices } from "./model/built-in-service.ts";
import { type Notifications, openNotifications } from "./notifications/open-notifications.ts";
import type { IdentityIssuer } from "./objects/identity-issuer.ts";
import type { Vault } from "./objects/vault.ts";
import { awaitTrust } from "./peers/await-trust.ts";
import { clusterMetrics } from "./peers/cluster-metrics.ts";
import { CoordinatorTable } from "./peers/coordinator-table.ts";
import type { ReadKeyFiles } from "./peers/enroll-coordinator.ts";
import { leadEvent } from "./peers/lead-event.ts";
import { coordinatorMetrics } from "./peers/metrics.ts";
import { ownPlace } from "./peers/own-place.ts";
import { randomName } from "./random-name.ts";
import { reachableAt } from "./reachable-at.ts";
import { CallAudit } from "./rpc/call-audit.ts";
import type { ServeOptions } from "./rpc/serve.ts";
import { addServices, type ServicesOptions } from "./services.ts";
import { servingOf } from "./serving.ts";
import { statusText } from "./status-text.ts";
import type { DurableStore, Store } from "./store/index.ts";
import { type SupportSourcesOptions, supportSources } from "./support/support-sources.ts";
import type { Clock } from "./time/clock.ts";
import { type Access, openAccess } from "./workspaces/access/open-access.ts";
import type { ContentStore } from "./workspaces/content/content-store.ts";
import { openContentStore } from "./workspaces/content/open-content-store.ts";
import { ingressServices } from "./workspaces/ingress/ingress-service.ts";
import { liveWorkspaces } from "./workspaces/live-workspaces.ts";
import { openWorkspaces } from "./workspaces/open-workspaces.ts";
import { workspaceSource } from "./workspaces/support-source.ts";
import { WORKSPACE_KIND } from "./workspaces/workspace-kind.ts";

export interface CoordinatorOptions {
  readonly config: Config;
  readonly store: Store & Pick<DurableStore, "leadsSinceMs" | "leadIsConfirmed" | "members" | "unansweredMs">;
  /** Grows with each restore of the store. */
  readonly epoch: number;
  /** The random id of the store's history, see LevelStore. */
  readonly lineage: string;
  readonly clusterId: string;
  /** Reads the keys for further coordinators. Default: there can be none. */
  readonly readKeyFiles?: ReadKeyFiles | undefined;
  readonly authority: Authority;
  /** Default: the authority can't be replaced while the coordinator runs. */
  readonly authorityRoll?: AuthorityRoll | undefined;
  /** Encrypts secrets. */
  readonly vault: Vault;
  /** Signs the identity tokens of pods. */
  readonly issuer: IdentityIssuer;
  /** The record of calls. Default: none. */
  readonly audit?: AuditLog;
  /** The backups of the store, until the coordinator is closed. Default: none can be made. */
  readonly backups?: Backups | undefined;
  /** Holds the archives of workspaces. Default: a directory below `dataDir`. */
  readonly content?: ContentStore | undefined;
  /** The addresses of this host, for the certificate of the gRPC port. Default: none. */
  readonly hostAddresses?: readonly string[];
  /** The file with the pages of the dashboard. Default: it answers that it is not built. */
  readonly dashboardPath?: string;
  readonly clock: Clock;
  readonly log: Log;
  /** The newest lines of the log, for support bundles. Default: none are kept. */
  readonly recentLog?: RecentLines | undefined;
  /** Called when the coordinator can't continue. The process should end and be restarted. */
  readonly onFatal: (error: unknown) => void;
  /** The parts of a follower that go on when it leads. Default: all parts are made. */
  readonly follower?: Follower;
}

export interface Coordinator {
  readonly grpc: HostPort;
  readonly http: HostPort;
  readonly destination: HostPort | undefined;
  /** The ports through which people reach their workspaces. */
  readonly access: Pick<Access, "ingress" | "ssh"> | undefined;
  /** Returns the state of the fleet in one line. */
  status(): string;
  /** Streams end with OK, steps in progress finish, the store stays open (its owner closes it). */
  close(): Promise<void>;
}

/** Time for clients to take in the end of their streams. */
const CLOSE_GRACE_MS = 1_000;

/** Puts the parts together and opens the ports. */
export async function startCoordinator(options: CoordinatorOptions): Promise<Coordinator> {
  const { store, clock, log, follower: given } = options;
  const certificateIssuer = await openCertificateIssuer(options);
  const defer = (run: () => void): void => void setImmediate(run);
  const listening = Promise.withResolvers<void>();
  const core = await startCore({
    ...options,
    ...(given && { view: given }),
    reachableAt: reachableAt(portNames(options), hostPort(options.config.grpc.listen).port),
    certificateIssuer,
    ...{ started: listening.promise, usageOfAllPods: true },
    ...{
      foreignKinds: [WORKSPACE_KIND],
      builtIn: new BuiltInServices(ingressServices(options.config.workspaces)),
    },
    ...{ randomName, randomBytes, defer },
  });
  const { state, services } = core;
  const stopping = given?.stopping ?? new AbortController();
  const stopSweeping = sweepExpiredTokens({ store, clock, log });
  const stopWatching = watchStore({ store, clock, onBroken: options.onFatal });

  const port = given?.port ?? (await openGrpcPort({ ...options, state }));
  const metrics = openMetrics(options, core, () => port.stats());
  const audit = new CallAudit({ log: options.audit ?? NO_AUDIT_LOG, monotonicMs: clock.monotonicMs });
  observePort(port, metrics, audit, services);
  const { serving, calls } = servingOf(port, {
    ...{ config: options.config, log, audit, monotonicMs: clock.monotonicMs, observe: metrics.observeCall },
    stopping: stopping.signal,
    silentMs: () => store.unansweredMs ?? 0,
    revision: () => store.revision,
    mayDeny: () => store.leadIsConfirmed ?? true,
  });
  const workspaces = await openOptionalWorkspaces(options, core, listening.promise);
  if (workspaces !== undefined) metrics.add(workspaces.addMetrics);
  const coordinators = openCoordinatorTable(options, core, metrics);
  const notifications = await startNotifications(options, core, metrics);
  const support = openSupport(options, core, metrics, workspaces?.support);
  const http = await openHttp(options, port, {
    metrics,
    ...{ operator: services.operator, workspaces: workspaces?.live, refusal: core.refusal },
    ...{ tokenWatch: port.tokenWatch, calls },
    stopping: stopping.signal,
  });
  const passedHttp = { fetch: http.fetch, revision: () => store.revision };
  const served = { ...services, coordinators, notifications, support, http: passedHttp };
  // Nothing is waited for in between, so that no call finds the port without its services.
  given?.handOver();
  addServices(port.server, served, serving, workspaces?.services);
  http.serve();
  const plain =
    given === undefined ? await openPlainDestination(options, services, serving, metrics) : given.plain;
  const grpc = given?.address ?? (await port.listen());
  port.observer.material = (material) => http.reload(material);
  listening.resolve();
  audit.started();
  const addresses = { grpc, http: http.address, destination: plain?.address };
  log.info({ event: "coordinator-started", ...addresses, revision: store.revision });
  return {
    ...addresses,
    access: workspaces?.access,
    status: () => statusOf(core, store),
    close: async () => {
      stopping.abort();
      stopSweeping();
      stopWatching();
      core.stopSessions();
      await Promise.all([port.close(CLOSE_GRACE_MS), plain?.close(CLOSE_GRACE_MS), http.close()]);
      await closeParts(options, { core, workspaces, notifications, audit });
      certificateIssuer?.close();
    },
  };
}

/** Closes what writes to the store, once the ports are closed. */
async function closeParts(
  { follower, backups }: CoordinatorOptions,
  {
    core,
    workspaces,
    notifications,
    audit,
  }: {
    readonly core: Core;
    readonly workspaces: { close(): Promise<void> } | undefined;
    readonly notifications: Notifications;
    readonly audit: CallAudit;
  },
): Promise<void> {
  await core.services.operator.tokenUses.close();
  await workspaces?.close();
  await notifications.close();
  await core.close();
  await follower?.close();
  await audit.close();
  await backups?.close();
}

function openSupport(
  options: CoordinatorOptions,
  core: Core,
  metrics: Metrics,
  workspaces: SupportSourcesOptions["workspaces"],
) {
  return supportSources({
    ...{ ...options, recentLog: options.recentLog, version: manifest.version, workspaces },
    metrics: () => metrics.render(),
    status: () => statusOf(core, options.store),
  });
}

function observePort(
  { observer }: GrpcPort,
  metrics: Metrics,
  audit: CallAudit,
  { operator }: ServicesOptions,
): void {
  Object.assign(observer, {
    call: metrics.observeCall,
    cut: (why: string) => metrics.observeCut("grpc", why),
    refused: (...refusal: Parameters<CallAudit["refused"]>) => audit.refused(...refusal),
    tokenUsed: (id: string) => operator.tokenUses.used(id),
  } satisfies PortObserver);
}

function openMetrics(
  { store, clock, backups }: CoordinatorOptions,
  { state, events, services, liveness, refusal }: Core,
  connections: GrpcPort["stats"],
): Metrics {
  const { certificates } = services.operator;
  return createMetrics({
    state,
    store,
    events,
    certificates,
    liveness,
    refusal,
    backups,
    nowMs: clock.nowMs,
    connections,
  });
}

/** Opens the table of the coordinators, and records which one leads if there can be several. */
function openCoordinatorTable(
  options: CoordinatorOptions,
  { events, services, decides }: Core,
  metrics: Metrics,
): CoordinatorTable {
  const { config, store, clock, follower } = options;
  const own = ownPlace(options);
  const onTokenUsed = (id: string): void => services.operator.tokenUses.used(id);
  const table = new CoordinatorTable({
    own,
    store,
    clock,
    decides,
    onTokenUsed,
    sinceMs: store.leadsSinceMs,
  });
  if (config.store.etcd === undefined) return table;
  metrics.add((registers) => coordinatorMetrics(table, registers));
  const leader = () => ({ name: own.name, sinceMs: store.leadsSinceMs });
  metrics.add((registers) => clusterMetrics({ leader, members: store.members }, registers));
  events.record(leadEvent(own, { hasFollowed: follower !== undefined }));
  if (options.authorityRoll !== undefined) awaitTrust(options.authorityRoll, table);
  return table;
}

async function startNotifications(
  { config, clock, log }: CoordinatorOptions,
  { store, events }: Core,
  metrics: Metrics,
): Promise<Notifications> {
  const { notifications: settings, cluster } = config;
  const opened = await openNotifications({ settings, cluster, store, events, clock, log });
  metrics.add(opened.addMetrics);
  return opened;
}

async function openOptionalWorkspaces(options: CoordinatorOptions, core: Core, started: Promise<void>) {
  const { config, vault, clock, log, epoch, onFatal } = options;
  const { workspaces: settings, dataDir } = config;
  if (!settings.enabled) return undefined;
  const { store, state, control, services, time } = core;
  const content =
    options.content ?? (await openContentStore({ settings: settings.content, dataDir, randomName, clock }));
  const workspaces = await openWorkspaces({
    ...{ store, state, vault, clock, log, epoch, onFatal, started, randomName, randomBytes },
    ...{ settings, content, time },
    unschedulable: control.unschedulable,
    quota: services.operator.namespaceRules,
  });
  const access = await openAccess({
    ...{ settings, workspaces, broker: services.broker, podUse: services.operator.podUse },
    ...{ store, dataDir, clock, log },
  });
  return {
    services: workspaces.services,
    support: workspaceSource(workspaces.view, vault),
    addMetrics: (registers: Registry[]) => {
      workspaces.addMetrics(registers);
      access.addMetrics(registers);
    },
    access,
    live: liveWorkspaces(workspaces, settings.namespace),
    close: async () => {
      await access.close();
      await workspaces.close();
    },
  };
}

function openCertificateIssuer({ config, store, vault, clock, authority }: CoordinatorOptions) {
  const { certificates: settings } = config;
  return openIssuer({ settings, cluster: authority.cluster, store, vault, clock, randomBytes });
}

/** The port for HTTP. It answers as a leader's does after `serve`. */
type LeaderHttp = Pick<HttpServer, "address" | "fetch" | "reload" | "close"> & { serve(): void };

/** Opens the port for HTTP, or prepares to take over the one of the follower that this coordinator was. */
async function openHttp(
  { config, store, authority, issuer, clock, log, dashboardPath, follower }: CoordinatorOptions,
  { names }: GrpcPort,
  parts: HttpOptions,
): Promise<LeaderHttp> {
  const { metrics, refusal } = parts;
  const since = new Date(store.leadsSinceMs ?? clock.nowMs()).toISOString();
  const storedSessions = await StoredSessions.open({ store, log });
  const own = { config, issuer, clock, dashboardPath, storedSessions };
  const { routes, otherHosts, close } = httpRoutes({ ...parts, ...own });
  const content: HttpContent = {
    ...{ metrics, routes, otherHosts },
    readiness: () => ({
      ...readiness(store, refusal),
      ...(config.store.etcd && { role: { leads: true, leader: hostname(), since } }),
    }),
  };
  const listen = hostPort(config.http.listen);
  const tls = config.http.tls && { tls: await serverMaterial(authority, httpNamesOf(config.http, names)) };
  const server = follower?.http ?? (await startHttpServer({ ...content, ...tls, listen }));
  return {
    ...server,
    serve: () => follower?.http.replace(content),
    close: () => {
      close();
      return server.close();
    },
  };
}

function openPlainDestination(
  { config: { destination }, clock: { schedule } }: CoordinatorOptions,
  services: ServicesOptions,
  serving: ServeOptions,
  metrics: Metrics,
) {
  if (destination === "off") return undefined;
  return startPlainDestination(
    hostPort(destination.listen),
    { ...services.destination, authorize: false },
    {
      ...serving,
      schedule,
      observeCut: (reason, count) => metrics.observeCut("destination", reason, count),
    },
  );
}

function statusOf({ state, refusal }: Core, store: Store): string {
  const nodes = state.nodes();
  const readyNodes = nodes.filter(({ health }) => health.ready).length;
  const { reasons } = readiness(store, refusal);
  return statusText({ nodes: nodes.length, readyNodes, pods: state.pods().length, reasons });
}

function readiness(
  store: Store,
  refusal: () => string | undefined,
): { readonly ready: boolean; readonly reasons: readonly string[] } {
  const health = store.health();
  const refused = refusal();
  if (refused !== undefined) return { ready: false, reasons: [refused] };
  if (health.status === "ok") return { ready: true, reasons: [] };
  return {
    ready: false,
    reasons: [health.status === "closed" ? "the store is closed" : `store: ${health.message}`],
  };
}
