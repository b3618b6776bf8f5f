import type { Log } from "@forage/common/log";
import type { PeerIdentity } from "@forage/identity";
import { type TlsMaterial, TlsServer, type TlsServerOptions } from "@forage/identity/tls-server";
import { HealthService } from "@forage/proto/grpc/health/v1/health";
import type { Server } from "@grpc/grpc-js";
import type { Authority, AuthorityRoll } from "./authority/authority.ts";
import { type Config, type HostPort, hostPort } from "./config.ts";
import { httpNamesOf } from "./http/pod-domain.ts";
import { CODE } from "./http2/frames.ts";
import { serverMaterial } from "./identity.ts";
import { isRevoked } from "./link/enroll.ts";
import { reachableNames } from "./reachable-at.ts";
import { keepReissued } from "./reissue.ts";
import { Admission } from "./rpc/admission.ts";
import { clientAddress, type IdentifyOptions, identify } from "./rpc/identify.ts";
import { NodeServer } from "./rpc/node-server/node-server.ts";
import { SharedServer } from "./rpc/node-server/served-methods.ts";
import type { ServeOptions } from "./rpc/serve.ts";
import { serverOptions, UNPROVEN_STREAMS } from "./rpc/server-options.ts";
import { TokenWatch } from "./rpc/token-watch.ts";
import type { ClusterView } from "./state/cluster-view.ts";
import { type Clock, systemClock } from "./time/clock.ts";

export interface GrpcPortOptions {
  readonly config: Pick<Config, "grpc" | "http" | "names" | "nodeCertificates">;
  readonly authority: Authority;
  /** The replacement of the authority. Default: the authority is not replaced. */
  readonly authorityRoll?: AuthorityRoll | undefined;
  /** The addresses of this host, for the certificate of the port. Default: none. */
  readonly hostAddresses?: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  readonly state: ClusterView;
}

/** Observes the port. The component that currently serves sets its functions. */
export interface PortObserver {
  call?: ServeOptions["observe"];
  cut?: (reason: string) => void;
  refused?: (method: string, peer: string, code: number, message: string) => void;
  tokenUsed?: (id: string) => void;
  /** Called with each new certificate of the port. */
  material?: (material: TlsMaterial) => void;
}

/**
 * The TLS port for gRPC, which admits calls by their headers, and its server, to which services are
 * added.
 */
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

/** The method that anyone may call, so that its success authenticates no caller. */
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
  const tls = await createTls(options, names, {
    onCut: (reason) => observer.cut?.(reason),
    accept: (socket, { identity, remoteAddress }) => {
      if (identity.type !== "node") return false;
      const sslPeerCertificate = socket.getPeerCertificate();
      nodes.accept(socket, {
        getPeer: () => remoteAddress,
        getAuthContext: () => ({ sslPeerCertificate }),
      });
      return true;
    },
  });
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
  const server = new SharedServer(serverOptions(UNPROVEN_STREAMS, [admission.interceptor]));
  const nodes = new NodeServer({
    ...{ methods: server, admission },
    // The silence of a peer is that of its socket, as in `TlsServer`.
    ...{ nowMs: clock.nowMs, monotonicMs: systemClock.monotonicMs, schedule: systemClock.schedule },
    onFailure: (peer, { code, reason }) => {
      log.debug({ event: "cut", reason });
      if (code !== CODE.ENHANCE_YOUR_CALM) return;
      tls.pace(peer.slice(0, peer.lastIndexOf(":")));
      observer.cut?.(reason);
    },
  });
  const reload = (material: TlsMaterial): void => {
    tls.reload(material);
    observer.material?.(material);
  };
  const all = httpNamesOf(config.http, names);
  const cancelRenewal = keepReissued({ issue: () => serverMaterial(authority, all), reload, clock, log });
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
      nodes.leave();
      await tls.close(graceMs);
      server.forceShutdown();
    },
  };
}

/**
 * Uses and accepts certificates of the present authorities. Ends connections with certificates of a
 * retired one.
 */
function followAuthority(
  { authorityRoll, state }: GrpcPortOptions,
  tls: TlsServer,
  reissue: () => Promise<void>,
): void {
  authorityRoll?.onChange(async () => {
    await reissue();
    if (authorityRoll.roots().length > 1) return;
    const isOld = (id: PeerIdentity): boolean =>
      id.type === "node" && state.node(id.nodeId)?.record.serials[0] !== id.serial;
    tls.disconnect(isOld, "AUTHORITY_RETIRED");
  });
}

/** Ends the connections of a node soon after it was revoked or removed. */
function followRevocations({ state }: GrpcPortOptions, tls: TlsServer): void {
  state.subscribe((changes) => {
    for (const change of changes) {
      if (change.type !== "node" || change.before === undefined) continue;
      const { before, after } = change;
      if (after === undefined || (after.record.revoked && !before.record.revoked))
        tls.recheck((identity) => identity.type === "node" && identity.nodeId === before.name);
    }
  });
}

function openTokens({ clock, state }: GrpcPortOptions, observer: PortObserver) {
  const { nowMs, schedule } = clock;
  const findToken: IdentifyOptions["findToken"] = (id) => state.apiToken(id);
  const tokens: IdentifyOptions = { findToken, nowMs, onUse: (id) => observer.tokenUsed?.(id) };
  const tokenWatch = new TokenWatch({ findToken, nowMs, schedule });
  state.subscribe((changes) => {
    for (const change of changes) if (change.type === "api-token") tokenWatch.changed(change);
  });
  return { tokens, tokenWatch };
}

async function createTls(
  { config, authority, clock, log, state }: GrpcPortOptions,
  names: readonly string[],
  { onCut, accept }: { readonly onCut: (reason: string) => void } & Pick<TlsServerOptions, "accept">,
): Promise<TlsServer> {
  return new TlsServer({
    material: await serverMaterial(authority, names),
    nowMs: clock.nowMs,
    cluster: authority.cluster,
    expiredGraceMs: config.nodeCertificates.graceDays * 24 * 3600 * 1000,
    ...(accept && { accept }),
    // Coordinators have the authority's key, so a list could not exclude one.
    isRevoked: (id) => (id.type === "node" ? isRevoked(state.node(id.nodeId), id) : id.type === "client"),
    onEvent: (event) => {
      if (event.type === "cut") onCut(event.reason);
      log.debug({ event: event.type, reason: "reason" in event ? event.reason : undefined });
    },
  });
}
