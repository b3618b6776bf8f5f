import type { Log } from "@forage/common/log";
import type { PeerIdentity } from "@forage/identity";
import { type TlsMaterial, TlsServer } from "@forage/identity/tls-server";
import { HealthService } from "@forage/proto/grpc/health/v1/health";
import { Server } from "@grpc/grpc-js";
import type { Authority, AuthorityRoll } from "./authority/authority.ts";
import { type Config, type HostPort, hostPort } from "./config.ts";
import { httpNamesOf } from "./http/pod-domain.ts";
import { serverMaterial } from "./identity.ts";
import { isRevoked } from "./link/enroll.ts";
import { reachableNames } from "./reachable-at.ts";
import { isReissueDue } from "./reissue.ts";
import { Admission } from "./rpc/admission.ts";
import { clientAddress, type IdentifyOptions, identify } from "./rpc/identify.ts";
import type { ServeOptions } from "./rpc/serve.ts";
import { serverOptions, UNPROVEN_STREAMS } from "./rpc/server-options.ts";
import { TokenWatch } from "./rpc/token-watch.ts";
import type { ClusterView } from "./state/cluster-view.ts";
import type { Clock } from "./time/clock.ts";

export interface GrpcPortOptions {
  readonly config: Pick<Config, "grpc" | "http" | "names" | "nodeCertificates">;
  readonly authority: Authority;
  /** Default: the authority is not replaced. */
  readonly authorityRoll?: AuthorityRoll | undefined;
  /** The addresses of this host, for the certificate of the port. Default: none. */
  readonly hostAddresses?: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  readonly state: ClusterView;
}

/** Receives what happens on the port. The part of the coordinator that serves at the moment sets it. */
export interface PortObserver {
  call?: ServeOptions["observe"];
  cut?: (reason: string) => void;
  refused?: (method: string, peer: string, code: number, message: string) => void;
  tokenUsed?: (id: string) => void;
  /** Called with each new certificate of the port. */
  material?: (material: TlsMaterial) => void;
}

/** The TLS port for gRPC: who may call, from the headers on, and the server whose services are added by others. */
export interface GrpcPort {
  readonly server: Server;
  readonly names: readonly string[];
  readonly observer: PortObserver;
  readonly tokens: IdentifyOptions;
  readonly tokenWatch: TokenWatch;
  readonly identify: ServeOptions["identify"];
  readonly peerOf: NonNullable<ServeOptions["peerOf"]>;
  readonly streamOf: Admission["streamOf"];
  stats(): ReturnType<TlsServer["stats"]>;
  /** Opens the port. */
  listen(): Promise<HostPort>;
  close(graceMs: number): Promise<void>;
}

/** A wall clock that was wrong is noticed within a minute after it was set. */
const CHECK_SERVER_CERTIFICATE_MS = 60_000;
/** Answered to everyone, so that its answer proves nothing. */
const HEALTH_CHECK = HealthService.check.path;

/** Returns the names in the certificate of the port. */
export function portNames({
  config,
  hostAddresses = [],
}: Pick<GrpcPortOptions, "config" | "hostAddresses">): string[] {
  const { host } = hostPort(config.grpc.listen);
  return reachableNames({ listenHost: host, names: config.names, hostAddresses });
}

export async function openGrpcPort(options: GrpcPortOptions): Promise<GrpcPort> {
  const { config, authority, clock, log } = options;
  const names = portNames(options);
  const observer: PortObserver = {};
  const tls = await createTls(options, names, (reason) => observer.cut?.(reason));
  const { tokens, tokenWatch } = openTokens(options, observer);
  const identifyCall: ServeOptions["identify"] = (call) => identify(call.metadata, tls.peerOf(call), tokens);
  const peerOf: GrpcPort["peerOf"] = (call) => clientAddress(call.metadata, tls.peerOf(call), call.getPeer());
  const admission = new Admission({
    identify: identifyCall,
    peerOf,
    onProven: (call) => tls.prove(call),
    onServed: (method, call) => {
      if (method !== HEALTH_CHECK) tls.forgive(call);
    },
    observe: (...call) => observer.call?.(...call),
    onRefused: (...refusal) => observer.refused?.(...refusal),
    schedule: clock.schedule,
  });
  const server = new Server(serverOptions(UNPROVEN_STREAMS, [admission.interceptor]));
  const reload = (material: TlsMaterial): void => {
    tls.reload(material);
    observer.material?.(material);
  };
  const all = httpNamesOf(config.http, names);
  const cancelRenewal = renewMaterial(reload, authority, all, clock, log);
  followRevocations(options, tls);
  followAuthority(options, tls, async () => reload(await serverMaterial(authority, all)));
  return {
    ...{
      server,
      names,
      observer,
      tokens,
      tokenWatch,
      identify: identifyCall,
      peerOf,
      streamOf: admission.streamOf,
    },
    stats: () => tls.stats(),
    listen: () => tls.listen(server, hostPort(config.grpc.listen)),
    close: async (graceMs) => {
      cancelRenewal();
      tokenWatch.close();
      await tls.close(graceMs);
      server.forceShutdown();
    },
  };
}

/** Presents and accepts the certificates of the present authorities. Ends connections with certificates of one that is retired. */
function followAuthority(
  { authorityRoll, state }: GrpcPortOptions,
  tls: TlsServer,
  reissue: () => Promise<void>,
): void {
  authorityRoll?.onChange(async () => {
    await reissue();
    if (authorityRoll.roots().length > 1) return;
    const isOld = (id: PeerIdentity): boolean =>
      id.kind === "node" && state.node(id.nodeId)?.record.serials[0] !== id.serial;
    tls.disconnect(isOld, "AUTHORITY_RETIRED");
  });
}

/** Ends the connections of a node soon after it is revoked or removed. */
function followRevocations({ state }: GrpcPortOptions, tls: TlsServer): void {
  state.subscribe((changes) => {
    for (const change of changes) {
      if (change.kind !== "node" || change.before === undefined) continue;
      const { before, after } = change;
      if (after === undefined || (after.record.revoked && !before.record.revoked))
        tls.recheck((identity) => identity.kind === "node" && identity.nodeId === before.name);
    }
  });
}

function openTokens({ clock, state }: GrpcPortOptions, observer: PortObserver) {
  const { nowMs, schedule } = clock;
  const findToken: IdentifyOptions["findToken"] = (id) => state.apiToken(id);
  const tokens: IdentifyOptions = { findToken, nowMs, onUse: (id) => observer.tokenUsed?.(id) };
  const tokenWatch = new TokenWatch({ findToken, nowMs, schedule });
  state.subscribe((changes) => {
    for (const change of changes) if (change.kind === "api-token") tokenWatch.changed(change);
  });
  return { tokens, tokenWatch };
}

async function createTls(
  { config, authority, clock, log, state }: GrpcPortOptions,
  names: readonly string[],
  onCut: (reason: string) => void,
): Promise<TlsServer> {
  return new TlsServer({
    material: await serverMaterial(authority, names),
    nowMs: clock.nowMs,
    cluster: authority.cluster,
    expiredGraceMs: config.nodeCertificates.graceDays * 24 * 3600 * 1000,
    // Coordinators hold the authority's key, so that one of them can't be kept out by a list.
    isRevoked: (id) => (id.kind === "node" ? isRevoked(state.node(id.nodeId), id) : id.kind === "client"),
    onEvent: (event) => {
      if (event.kind === "cut") onCut(event.reason);
      log.debug({ event: event.kind, reason: "reason" in event ? event.reason : undefined });
    },
  });
}

function renewMaterial(
  reload: (material: TlsMaterial) => void,
  authority: Authority,
  names: readonly string[],
  clock: Clock,
  log: Log,
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
        log.error({ event: "server-certificate-not-renewed", err }),
      );
    });
  };
  later();
  return () => cancel();
}
