import { randomBytes, randomInt } from "node:crypto";
import type { CertificateAuthority } from "@forage/identity/ca";
import { type TlsMaterial, TlsServer } from "@forage/identity/tls-server";
import { Server } from "@grpc/grpc-js";
import type { Logger } from "pino";
import { objectHandlers } from "./api/objects/handlers.ts";
import { type Config, ConfigError, type HostPort, hostPort, portRange } from "./config.ts";
import type { AddressRanges } from "./control/addresses/controller.ts";
import { parseIpRange } from "./control/addresses/ip-range.ts";
import type { Clock } from "./control/clock.ts";
import { type ControlOptions, startControl } from "./control/control.ts";
import { sweepExpiredTokens } from "./control/expired-tokens.ts";
import { watchStore } from "./control/store-watchdog.ts";
import { Directory } from "./destination/directory.ts";
import { readyEndpointCount } from "./destination/endpoints.ts";
import { startPlainDestination } from "./destination/plain-listener.ts";
import type { EventLimits } from "./events/limits.ts";
import { recordChanges } from "./events/record-changes.ts";
import { EventStore } from "./events/recorder.ts";
import { addObjectRoutes, type ObjectRouteOptions } from "./http/api/object-routes.ts";
import { addIdentityRoutes } from "./http/identity-routes.ts";
import { createMetrics } from "./http/metrics.ts";
import { type HttpServer, type HttpServerOptions, startHttpServer } from "./http/server.ts";
import { serverMaterial } from "./identity.ts";
import { Assignments } from "./link/assignments.ts";
import { isRevoked } from "./link/enroll.ts";
import { Sessions } from "./link/sessions.ts";
import { Tunnels } from "./link/tunnels.ts";
import type { IdentityIssuer } from "./objects/identity-issuer.ts";
import type { Vault } from "./objects/vault.ts";
import { type IdentifyOptions, identify } from "./rpc/identify.ts";
import type { ServeOptions } from "./rpc/serve.ts";
import { ServiceTable } from "./service-network/service-table.ts";
import { addServices, type ServicesOptions } from "./services.ts";
import { loadState } from "./state/follow.ts";
import { State } from "./state/state.ts";
import type { Store } from "./store/index.ts";

export interface CoordinatorOptions {
  readonly config: Config;
  readonly store: Store;
  /** Grows with each restore of the store. */
  readonly epoch: number;
  readonly clusterId: string;
  readonly authority: CertificateAuthority;
  /** Encrypts secrets. */
  readonly vault: Vault;
  /** Signs the identity tokens of pods. */
  readonly issuer: IdentityIssuer;
  readonly clock: Clock;
  readonly log: Logger;
  /** Told when the coordinator can't go on; the process should end and be started anew. */
  readonly onFatal: (error: unknown) => void;
}

export interface Coordinator {
  readonly grpc: HostPort;
  readonly http: HostPort;
  readonly destination: HostPort | undefined;
  /** Streams end with OK, steps in progress finish, the store stays open (its owner closes it). */
  close(): Promise<void>;
}

/** Half of the 30 days that a server certificate lives. */
const renewServerCertificateMs = 15 * 24 * 3600 * 1000;
/** Time for clients to take in the end of their streams. */
const closeGraceMs = 1_000;
/** Proxies hold two streams per service, so the usual 100 would cap them at 50 services. */
const maxStreamsPerConnection = 10_000;
const maxMessageBytes = 4 * 1024 * 1024;

/** Puts the parts together and opens the ports. */
export async function startCoordinator(options: CoordinatorOptions): Promise<Coordinator> {
  const { config, store, clock, log, authority } = options;
  const state = new State();
  const follow = await loadState(store, state);
  const stopping = new AbortController();
  // Steps in progress wait to see what they wrote, so the view follows the store until they are done.
  const over = new AbortController();
  const following = follow(over.signal).catch(options.onFatal);
  const heartbeatIntervalMs = config.heartbeatIntervalSeconds * 1000;
  const sessions = new Sessions({ state, clock, log, heartbeatIntervalMs });
  const tunnels = new Tunnels({ sessions, clock, randomName });
  const events = await EventStore.open({ store, clock, log, limits: eventLimits(config) });
  recordChanges(state, events);
  const control = startControl(controlOptions(options, state, events));
  const stopSweeping = sweepExpiredTokens({ store, clock, log });
  const stopWatching = watchStore({ store, clock, onBroken: options.onFatal });

  const names = [hostPort(config.grpc.listen).host, ...config.names];
  const tls = await createTls(options, state, names);
  const metrics = createMetrics({ state, store, events, connections: () => tls.stats() });
  const tokens: IdentifyOptions = { findToken: (id) => state.apiToken(id), nowMs: clock.nowMs };
  const serving: ServeOptions = {
    identify: (call) => identify(call.metadata, tls.peerOf(call), tokens),
    log,
    stopping: stopping.signal,
    observe: metrics.observeCall,
    monotonicMs: clock.monotonicMs,
  };
  const services = servicesOptions(options, { state, sessions, tunnels, control, heartbeatIntervalMs });
  const server = new Server(serverOptions);
  addServices(server, services, serving);
  const httpNames = [hostPort(config.http.listen).host, ...names];
  const http = await openHttp(options, {
    metrics,
    ...(config.http.tls && { tls: await serverMaterial(authority, httpNames) }),
    objects: {
      handlers: objectHandlers(services.operator),
      identify: tokens,
      observe: metrics.observeCall,
      monotonicMs: clock.monotonicMs,
    },
  });
  const plain = await openPlainDestination(config, services, serving);
  const grpc = await tls.listen(server, hostPort(config.grpc.listen));
  const reload = (material: TlsMaterial): void => {
    tls.reload(material);
    http.reload(material);
  };
  const cancelRenewal = renewMaterial(reload, authority, [...httpNames, ...names], clock, log);
  log.info(
    { grpc, http: http.address, destination: plain?.address, revision: store.revision },
    "coordinator is up",
  );

  return {
    grpc,
    http: http.address,
    destination: plain?.address,
    close: async () => {
      stopping.abort();
      cancelRenewal();
      stopSweeping();
      stopWatching();
      sessions.stop();
      await Promise.all([tls.close(closeGraceMs), plain?.close(), http.close()]);
      server.forceShutdown();
      await control.close();
      await events.close();
      over.abort();
      await following;
    },
  };
}

function controlOptions(
  { store, clock, log, config }: CoordinatorOptions,
  state: State,
  events: EventStore,
): ControlOptions {
  const { progressDeadlineSeconds, placementDeadlineSeconds, stableSeconds } = config.rollout;
  return {
    store,
    state,
    clock,
    log,
    randomName,
    profile: config.profile,
    events,
    limits: {
      deadlineMs: progressDeadlineSeconds * 1000,
      placementMs: placementDeadlineSeconds * 1000,
      stableMs: stableSeconds * 1000,
    },
    addresses: addressRanges(config),
    readyEndpoints: (namespace, service) => readyEndpointCount(state, namespace, service),
  };
}

function addressRanges({ services }: Config): AddressRanges {
  const [virtualIps, ...loadBalancerIps] = [services.virtualIps, ...services.loadBalancerIps].map(
    parseIpRange,
  );
  const nodePorts = portRange(services.nodePorts);
  if (virtualIps === undefined || nodePorts === undefined)
    throw new ConfigError("services: virtualIps and nodePorts must be ranges");
  return { virtualIps, loadBalancerIps: loadBalancerIps.filter((range) => range !== undefined), nodePorts };
}

async function createTls(
  { authority, clock, log }: CoordinatorOptions,
  state: State,
  names: readonly string[],
): Promise<TlsServer> {
  return new TlsServer({
    material: await serverMaterial(authority, names),
    nowMs: clock.nowMs,
    cluster: authority.cluster,
    isRevoked: (id) => id.kind !== "node" || isRevoked(state.node(id.nodeId), id.serial),
    onEvent: (event) =>
      log.debug({ event: event.kind, reason: "reason" in event ? event.reason : undefined }, "tls"),
  });
}

function eventLimits({ events }: Config): EventLimits {
  return { maxCount: events.maxCount, maxBytes: events.maxMegabytes * 1024 * 1024 };
}

function openHttp(
  { config, store, issuer }: CoordinatorOptions,
  parts: Pick<HttpServerOptions, "metrics" | "tls"> & { readonly objects: ObjectRouteOptions },
): Promise<HttpServer> {
  const { objects, ...rest } = parts;
  return startHttpServer({
    ...rest,
    listen: hostPort(config.http.listen),
    readiness: () => readiness(store),
    routes: (app) => {
      addIdentityRoutes(app, issuer);
      addObjectRoutes(app, objects);
    },
  });
}

function openPlainDestination({ destination }: Config, services: ServicesOptions, serving: ServeOptions) {
  if (destination === "off") return undefined;
  return startPlainDestination(
    hostPort(destination.listen),
    { ...services.destination, authorize: false },
    serving,
    serverOptions,
  );
}

const serverOptions = {
  "grpc.max_concurrent_streams": maxStreamsPerConnection,
  "grpc.max_receive_message_length": maxMessageBytes,
  "grpc.keepalive_time_ms": 20_000,
  "grpc.keepalive_timeout_ms": 10_000,
};

function servicesOptions(
  { store, clock, log, authority, clusterId, config, epoch, vault, issuer }: CoordinatorOptions,
  parts: {
    readonly state: State;
    readonly sessions: Sessions;
    readonly tunnels: Tunnels;
    readonly control: ReturnType<typeof startControl>;
    readonly heartbeatIntervalMs: number;
  },
): ServicesOptions {
  const { state, sessions, tunnels, control, heartbeatIntervalMs } = parts;
  const rollouts = control.rollouts;
  return {
    forage: { store, state, clock, randomName, rollouts },
    operator: {
      store,
      state,
      clock,
      log,
      vault,
      unplaced: control.unplaced,
      rollouts,
      tunnels,
      randomBytes,
      authorityPin: authority.pin,
    },
    connect: {
      store,
      state,
      sessions,
      assignments: new Assignments({ state, vault, issuer, clock, log }),
      services: serviceTableOf(state, config),
      clock,
      log,
      clusterId,
      epoch,
      heartbeatIntervalMs,
    },
    enroll: { store, state, clock, log, authority, clusterId },
    destination: { directory: directoryOf(state, config.clusterDomain), authorize: true },
    tunnels,
  };
}

function directoryOf(state: State, domain: string): Directory {
  const virtualIps = (ip: string) =>
    state.serviceAddresses
      .group(`ip:${ip}`)
      .filter(({ record }) => record.releasedAt === undefined)
      .map(({ record: { namespace, name } }) => ({ namespace, service: name }));
  return new Directory({ state, domain, virtualIps, defer: (run) => setImmediate(run) });
}

function serviceTableOf(state: State, { clusterDomain: domain, services }: Config): ServiceTable {
  const virtualIpRanges = [services.virtualIps];
  return new ServiceTable({ state, domain, virtualIpRanges, defer: (run) => setImmediate(run) });
}

function renewMaterial(
  reload: (material: TlsMaterial) => void,
  authority: CertificateAuthority,
  names: readonly string[],
  clock: Clock,
  log: Logger,
): () => void {
  let cancel = (): void => {};
  const later = (): void => {
    cancel = clock.schedule(renewServerCertificateMs, () => {
      later();
      serverMaterial(authority, names).then(reload, (err: unknown) =>
        log.error({ err }, "the server certificate could not be renewed"),
      );
    });
  };
  later();
  return () => cancel();
}

function readiness(store: Store): { readonly ready: boolean; readonly reasons: readonly string[] } {
  const health = store.health();
  if (health.status === "ok") return { ready: true, reasons: [] };
  return {
    ready: false,
    reasons: [health.status === "closed" ? "the store is closed" : `store: ${health.message}`],
  };
}

/** Letters and digits that can't be mistaken for one another, so that names can be read aloud. */
const alphabet = "bcdfghjklmnpqrstvwxz2456789";

function randomName(length: number): string {
  return Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join("");
}
