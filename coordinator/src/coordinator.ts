import { randomBytes, randomInt } from "node:crypto";
import type { CertificateAuthority } from "@forage/identity/ca";
import { type TlsMaterial, TlsServer } from "@forage/identity/tls-server";
import { Server } from "@grpc/grpc-js";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { objectHandlers } from "./api/objects/handlers.ts";
import { metricHandlers } from "./api/operator/metric-handlers.ts";
import type { OperatorOptions } from "./api/operator/service.ts";
import { type AuditLog, NO_AUDIT_LOG } from "./audit/audit-log.ts";
import { certificateHandlers } from "./certificates/handlers.ts";
import { openIssuer } from "./certificates/open-issuer.ts";
import { type Config, type HostPort, hostPort } from "./config.ts";
import { sweepExpiredTokens } from "./control/expired-tokens.ts";
import { watchStore } from "./control/store-watchdog.ts";
import { type Core, startCore } from "./core.ts";
import { openDashboard } from "./dashboard/open-dashboard.ts";
import { startPlainDestination } from "./destination/plain-listener.ts";
import type { ApiCallOptions } from "./http/api/call.ts";
import { addCertificateRoutes } from "./http/api/certificate-routes.ts";
import { addEventRoutes } from "./http/api/event-routes.ts";
import { addMetricRoutes } from "./http/api/metric-routes.ts";
import { addObjectRoutes } from "./http/api/object-routes.ts";
import { addPlanRoutes } from "./http/api/plan-routes.ts";
import { addIdentityRoutes } from "./http/identity-routes.ts";
import { createMetrics, type Metrics } from "./http/metrics.ts";
import { type HttpServer, type HttpServerOptions, startHttpServer } from "./http/server.ts";
import { serverMaterial } from "./identity.ts";
import { isRevoked } from "./link/enroll.ts";
import { BuiltInServices } from "./model/built-in-service.ts";
import type { IdentityIssuer } from "./objects/identity-issuer.ts";
import type { Vault } from "./objects/vault.ts";
import { reachableAt, reachableNames } from "./reachable-at.ts";
import { isReissueDue } from "./reissue.ts";
import { Admission } from "./rpc/admission.ts";
import { CallAudit } from "./rpc/call-audit.ts";
import { type IdentifyOptions, identify } from "./rpc/identify.ts";
import type { ServeOptions } from "./rpc/serve.ts";
import { serverOptions, UNPROVEN_STREAMS } from "./rpc/server-options.ts";
import { TokenWatch } from "./rpc/token-watch.ts";
import { addServices, type ServicesOptions } from "./services.ts";
import type { ClusterView } from "./state/cluster-view.ts";
import { statusText } from "./status-text.ts";
import type { Store } from "./store/index.ts";
import type { Clock } from "./time/clock.ts";
import { type Access, openAccess } from "./workspaces/access/open-access.ts";
import type { ContentStore } from "./workspaces/content/content-store.ts";
import { openContentStore } from "./workspaces/content/open-content-store.ts";
import { ingressServices } from "./workspaces/ingress/ingress-service.ts";
import { openWorkspaces } from "./workspaces/open-workspaces.ts";
import { WORKSPACE_KIND } from "./workspaces/workspace-kind.ts";

export interface CoordinatorOptions {
  readonly config: Config;
  readonly store: Store;
  /** Grows with each restore of the store. */
  readonly epoch: number;
  /** The random id of the store's history, see LevelStore. */
  readonly lineage: string;
  readonly clusterId: string;
  readonly authority: CertificateAuthority;
  /** Encrypts secrets. */
  readonly vault: Vault;
  /** Signs the identity tokens of pods. */
  readonly issuer: IdentityIssuer;
  /** The record of calls. Default: none. */
  readonly audit?: AuditLog;
  /** Holds the archives of workspaces. Default: a directory below `dataDir`. */
  readonly content?: ContentStore | undefined;
  /** The addresses of this host, for the certificate of the gRPC port. Default: none. */
  readonly hostAddresses?: readonly string[];
  /** The file with the pages of the dashboard. Default: it answers that it is not built. */
  readonly dashboardPath?: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when the coordinator can't continue. The process should end and be restarted. */
  readonly onFatal: (error: unknown) => void;
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

/** A wall clock that was wrong is noticed within a minute after it was set. */
const CHECK_SERVER_CERTIFICATE_MS = 60_000;
/** Time for clients to take in the end of their streams. */
const CLOSE_GRACE_MS = 1_000;

/** Puts the parts together and opens the ports. */
export async function startCoordinator(options: CoordinatorOptions): Promise<Coordinator> {
  const { config, store, clock, log, authority } = options;
  const certificateIssuer = await openCertificateIssuer(options);
  const defer = (run: () => void): void => void setImmediate(run);
  const listening = Promise.withResolvers<void>();
  const { listen, names } = listened(options);
  const core = await startCore({
    ...options,
    reachableAt: reachableAt(names, listen.port),
    certificateIssuer,
    started: listening.promise,
    ...{ foreignKinds: [WORKSPACE_KIND], builtIn: new BuiltInServices(ingressServices(config.workspaces)) },
    ...{ randomName, randomBytes, defer },
  });
  const { state, services } = core;
  const stopping = new AbortController();
  const stopSweeping = sweepExpiredTokens({ store, clock, log });
  const stopWatching = watchStore({ store, clock, onBroken: options.onFatal });

  const tls = await createTls(options, state, names, (why) => metrics.observeCut("grpc", why));
  const metrics = openMetrics(options, core, () => tls.stats());
  const { tokens, tokenWatch } = openTokens(options, core);
  const audit = new CallAudit({ log: options.audit ?? NO_AUDIT_LOG, monotonicMs: clock.monotonicMs });
  const serving: ServeOptions = {
    identify: (call) => identify(call.metadata, tls.peerOf(call), tokens),
    log,
    tokens: tokenWatch,
    stopping: stopping.signal,
    observe: metrics.observeCall,
    monotonicMs: clock.monotonicMs,
    audit,
  };
  const { server, streamOf } = createServer(tls, serving, audit, options);
  const workspaces = await openOptionalWorkspaces(options, core, listening.promise);
  if (workspaces !== undefined) metrics.add(workspaces.addMetrics);
  addServices(server, services, { ...serving, streamOf }, workspaces?.services);
  const httpNames = [hostPort(config.http.listen).host, ...names];
  const http = await openHttp(options, {
    metrics,
    ...(config.http.tls && { tls: await serverMaterial(authority, httpNames) }),
    operator: services.operator,
    tokenWatch,
    refusal: core.refusal,
    calls: { identify: tokens, observe: metrics.observeCall, monotonicMs: clock.monotonicMs, audit },
    stopping: stopping.signal,
  });
  const plain = await openPlainDestination(options, services, serving, metrics);
  const grpc = await tls.listen(server, listen);
  const reload = (material: TlsMaterial): void => {
    tls.reload(material);
    http.reload(material);
  };
  const cancelRenewal = renewMaterial(reload, authority, [...httpNames, ...names], clock, log);
  listening.resolve();
  audit.started();
  const addresses = { grpc, http: http.address, destination: plain?.address };
  log.info({ event: "coordinator-started", ...addresses, revision: store.revision }, "coordinator is up");
  return {
    ...addresses,
    access: workspaces?.access,
    status: () => statusOf(core, store),
    close: async () => {
      stopping.abort();
      cancelRenewal();
      stopSweeping();
      tokenWatch.close();
      stopWatching();
      core.stopSessions();
      await Promise.all([tls.close(CLOSE_GRACE_MS), plain?.close(CLOSE_GRACE_MS), http.close()]);
      server.forceShutdown();
      await services.operator.tokenUses.close();
      await workspaces?.close();
      await core.close();
      certificateIssuer?.close();
      await audit.close();
    },
  };
}

function listened({ config, hostAddresses = [] }: CoordinatorOptions) {
  const listen = hostPort(config.grpc.listen);
  return { listen, names: reachableNames({ listenHost: listen.host, names: config.names, hostAddresses }) };
}

function createServer(
  tls: TlsServer,
  { identify: identifyCall, observe }: ServeOptions,
  audit: CallAudit,
  { clock }: CoordinatorOptions,
): { readonly server: Server; readonly streamOf: Admission["streamOf"] } {
  const admission = new Admission({
    identify: identifyCall,
    onProven: (call) => tls.prove(call),
    ...(observe !== undefined && { observe }),
    onRefused: (...refusal) => audit.refused(...refusal),
    schedule: clock.schedule,
  });
  const server = new Server(serverOptions(UNPROVEN_STREAMS, [admission.interceptor]));
  return { server, streamOf: admission.streamOf };
}

function openMetrics(
  { store, clock }: CoordinatorOptions,
  { state, events, services, liveness, refusal }: Core,
  connections: () => ReturnType<TlsServer["stats"]>,
): Metrics {
  const { certificates } = services.operator;
  return createMetrics({
    state,
    store,
    events,
    certificates,
    liveness,
    refusal,
    nowMs: clock.nowMs,
    connections,
  });
}

function openTokens({ clock }: CoordinatorOptions, { state, services }: Core) {
  const { tokenUses } = services.operator;
  const { nowMs, schedule } = clock;
  const findToken: IdentifyOptions["findToken"] = (id) => state.apiToken(id);
  const tokens: IdentifyOptions = { findToken, nowMs, onUse: (id) => tokenUses.used(id) };
  const tokenWatch = new TokenWatch({ findToken, nowMs, schedule });
  state.subscribe((changes) => {
    for (const change of changes) if (change.kind === "api-token") tokenWatch.changed(change);
  });
  return { tokens, tokenWatch };
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
    addMetrics: (registers: Registry[]) => {
      workspaces.addMetrics(registers);
      access.addMetrics(registers);
    },
    access,
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

async function createTls(
  { config, authority, clock, log }: CoordinatorOptions,
  state: ClusterView,
  names: readonly string[],
  onCut: (reason: string) => void,
): Promise<TlsServer> {
  return new TlsServer({
    material: await serverMaterial(authority, names),
    nowMs: clock.nowMs,
    cluster: authority.cluster,
    expiredGraceMs: config.nodeCertificates.graceDays * 24 * 3600 * 1000,
    isRevoked: (id) => id.kind !== "node" || isRevoked(state.node(id.nodeId), id),
    onEvent: (event) => {
      if (event.kind === "cut") onCut(event.reason);
      log.debug({ event: event.kind, reason: "reason" in event ? event.reason : undefined }, "tls");
    },
  });
}

async function openHttp(
  { config, store, issuer, clock, dashboardPath = "" }: CoordinatorOptions,
  parts: Pick<HttpServerOptions, "metrics" | "tls"> & {
    readonly operator: OperatorOptions;
    readonly calls: ApiCallOptions;
    readonly tokenWatch: TokenWatch;
    readonly refusal: () => string | undefined;
    readonly stopping: AbortSignal;
  },
): Promise<HttpServer> {
  const { operator, calls, stopping, tokenWatch, refusal, ...rest } = parts;
  const dashboard = openDashboard({
    ...{ ...calls, operator, clock, tokens: tokenWatch, stopping, randomBytes },
    ...{ assetsPath: dashboardPath, cluster: config.cluster },
  });
  const server = await startHttpServer({
    ...rest,
    listen: hostPort(config.http.listen),
    readiness: () => readiness(store, refusal),
    routes: (app) => {
      addIdentityRoutes(app, issuer);
      // Before the routes of objects, which take any plural.
      addEventRoutes(app, {
        ...calls,
        events: operator.events,
        schedule: clock.schedule,
        tokens: tokenWatch,
        stopping,
      });
      addCertificateRoutes(app, { ...calls, handlers: certificateHandlers(operator) });
      addMetricRoutes(app, { ...calls, handlers: metricHandlers(operator.metrics.pushed) });
      addPlanRoutes(app, { ...calls, ...operator });
      addObjectRoutes(app, { ...calls, handlers: objectHandlers(operator) });
      dashboard.addTo(app);
    },
  });
  return {
    ...server,
    close: () => {
      dashboard.close();
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

function renewMaterial(
  reload: (material: TlsMaterial) => void,
  authority: CertificateAuthority,
  names: readonly string[],
  clock: Clock,
  log: Logger,
): () => void {
  let cancel = (): void => {};
  let issued = { wallMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
  const later = (): void => {
    cancel = clock.schedule(CHECK_SERVER_CERTIFICATE_MS, () => {
      later();
      const now = { wallMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
      if (!isReissueDue(issued, now)) return;
      issued = now;
      serverMaterial(authority, names).then(reload, (err: unknown) =>
        log.error(
          { event: "server-certificate-not-renewed", err },
          "the server certificate could not be renewed",
        ),
      );
    });
  };
  later();
  return () => cancel();
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

/** Letters and digits that can't be mistaken for one another, so that names can be read aloud. */
const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";

function randomName(length: number): string {
  return Array.from({ length }, () => ALPHABET[randomInt(ALPHABET.length)]).join("");
}
