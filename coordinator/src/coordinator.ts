import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { isBlockedByBrowsers } from "@forage/common/blocked-ports";
import type { Registry } from "prom-client";
import manifest from "../package.json" with { type: "json" };
import { NO_AUDIT_LOG } from "./audit/audit-log.ts";
import { openIssuer } from "./certificates/open-issuer.ts";
import { hostPort } from "./config.ts";
import { sweepExpiredTokens } from "./control/expired-tokens.ts";
import { watchStore } from "./control/store-watchdog.ts";
import type { Coordinator, CoordinatorOptions } from "./coordinator-options.ts";
import { type Core, startCore } from "./core.ts";
import { openStoredBrowsers } from "./dashboard/stored-browsers.ts";
import { startPlainDestination } from "./destination/plain-listener.ts";
import { type GrpcPort, openGrpcPort, type PortObserver, portNames } from "./grpc-port.ts";
import { createMetrics, type Metrics } from "./http/metrics.ts";
import { httpNamesOf } from "./http/pod-domain.ts";
import { type HttpContent, type HttpServer, startHttpServer } from "./http/server.ts";
import { type HttpOptions, httpRoutes } from "./http-routes.ts";
import { serverMaterial } from "./identity.ts";
import { BuiltInServices } from "./model/built-in-service.ts";
import { type Notifications, openNotifications } from "./notifications/open-notifications.ts";
import { awaitTrust } from "./peers/await-trust.ts";
import { clusterMetrics } from "./peers/cluster-metrics.ts";
import { CoordinatorTable } from "./peers/coordinator-table.ts";
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
import type { Store } from "./store/index.ts";
import { type SupportSourcesOptions, supportSources } from "./support/support-sources.ts";
import { openAccess } from "./workspaces/access/open-access.ts";
import { openContentStore } from "./workspaces/content/open-content-store.ts";
import { ingressServices } from "./workspaces/ingress/ingress-service.ts";
import { liveWorkspaces } from "./workspaces/live-workspaces.ts";
import { openWorkspaces } from "./workspaces/open-workspaces.ts";
import { workspaceSource } from "./workspaces/support-source.ts";
import { WORKSPACE_KIND } from "./workspaces/workspace-kind.ts";

export type { Coordinator, CoordinatorOptions } from "./coordinator-options.ts";

/** The time for clients to process the end of their streams. */
const CLOSE_GRACE_MS = 1_000;

/** Creates the coordinator's components, and opens the ports. */
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
  const accept = { http: http.accept, ...workspaces?.access.accept };
  const passedHttp = { fetch: http.fetch, accept, revision: () => store.revision };
  const served = { ...services, coordinators, notifications, support, http: passedHttp };
  // Nothing is awaited from here until the services are added, so that no call finds the port
  // without services.
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
  if (isBlockedByBrowsers(http.address.port))
    log.warn({ event: "http-port-blocked-by-browsers", http: http.address });
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
      await closeComponents(options, { core, workspaces, notifications, audit });
      certificateIssuer?.close();
    },
  };
}

/** Closes the components that write to the store, after the ports were closed. */
async function closeComponents(
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

/** Opens the table of coordinators, and records the new leader if there can be several. */
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
  const { config, vault, clock, log, epoch, onFatal, follower } = options;
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
    ...{ store, dataDir, clock, log, ports: follower?.access },
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

/** The HTTP port. It serves the leader's content after `serve`. */
type LeaderHttp = Pick<HttpServer, "accept" | "address" | "fetch" | "reload" | "close"> & { serve(): void };

/** Opens the HTTP port. If this coordinator was a follower before, prepares to take over its open port instead. */
async function openHttp(
  { config, store, authority, issuer, clock, log, dashboardPath, follower }: CoordinatorOptions,
  { names }: GrpcPort,
  httpOptions: HttpOptions,
): Promise<LeaderHttp> {
  const { metrics, refusal } = httpOptions;
  const since = new Date(store.leadsSinceMs ?? clock.nowMs()).toISOString();
  const stored = await openStoredBrowsers({ store, log });
  const own = { config, issuer, clock, dashboardPath, stored };
  const { routes, otherHosts, close } = httpRoutes({ ...httpOptions, ...own });
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
