import type { ServiceDefinition } from "@grpc/grpc-js";
import type { Logger } from "pino";
import type { Authority } from "../authority/authority.ts";
import { type Config, type HostPort, hostPort } from "../config.ts";
import { watchStore } from "../control/store-watchdog.ts";
import type { Directory } from "../destination/directory.ts";
import { openDirectory } from "../destination/open-directory.ts";
import { type PlainDestination, startPlainDestination } from "../destination/plain-listener.ts";
import { type GrpcPort, openGrpcPort } from "../grpc-port.ts";
import { type HttpServer, type Readiness, startHttpServer } from "../http/server.ts";
import { serverMaterial } from "../identity.ts";
import { nodeLimits } from "../link/node-limits.ts";
import { ownPlace } from "../peers/own-place.ts";
import { reportToLeader } from "../peers/report-to-leader.ts";
import type { ServeOptions } from "../rpc/serve.ts";
import {
  addDestination,
  addStandardServices,
  leaderDefinitions,
  ownDefinitions,
  servedDefinitions,
} from "../services.ts";
import { openView } from "../state/open-view.ts";
import type { FollowedStore, Leader } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import type { FollowedView } from "./followed-view.ts";
import { createFollowerMetrics } from "./follower-metrics.ts";
import { forward } from "./forward.ts";
import { LeaderLink } from "./leader-link.ts";
import { showStoredHealth } from "./stored-health.ts";

export interface FollowerOptions {
  readonly config: Config;
  readonly store: FollowedStore;
  /** This coordinator's id. */
  readonly self: string;
  readonly authority: Authority;
  /** Services of optional parts of the coordinator that leads. */
  readonly further: readonly ServiceDefinition[];
  /** The addresses of this host, for the certificate of the gRPC port. Default: none. */
  readonly hostAddresses?: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly onFatal: (error: unknown) => void;
}

/** A coordinator that follows. Its view, its ports and the look-ups on them stay open when it becomes the leader. */
export interface Follower extends FollowedView {
  readonly port: GrpcPort;
  readonly address: HostPort;
  readonly plain: PlainDestination | undefined;
  /** Aborted when the coordinator stops. */
  readonly stopping: AbortController;
  /** Takes in the coordinator that leads. */
  observe(leader: Leader): void;
  /** Returns what this coordinator does in one line. */
  status(): string;
  /** Ends what a coordinator does only while another one leads, and leaves the services of the port to the caller. */
  handOver(): Promise<void>;
  /** Ends everything. */
  close(): Promise<void>;
}

/** The store is behind when it was not known to be complete for so long. It is read every second. */
const BEHIND_MS = 5_000;
/** Time for clients to take in the end of their streams. */
const CLOSE_GRACE_MS = 1_000;

/**
 * Serves while another coordinator leads: Destination, health and reflection from its own view of the store. All other calls
 * are passed on to the leader.
 */
export async function startFollower(options: FollowerOptions): Promise<Follower> {
  const { config, store, authority, clock, log, self, onFatal } = options;
  const defer = (run: () => void): void => void setImmediate(run);
  const over = new AbortController();
  // Unreadable records are in the log, and the leader records them as events.
  const events = { record: () => {} };
  const { state, following } = await openView({ store, log, onFatal }, events, over.signal);
  const { recoveryMs } = nodeLimits(config);
  const { monotonicMs } = clock;
  const stopHealth = showStoredHealth({ state, monotonicMs, recoveryMs, defer });
  const directory = openDirectory(state, { config, defer });
  const stopWatching = watchStore({ store, clock, onBroken: onFatal });
  const link = new LeaderLink({ authority, self, clock });
  const port = await openGrpcPort({ ...options, state });
  const metrics = createFollowerMetrics({
    behindMs: () => store.behindMs,
    revision: () => store.revision,
    connections: () => port.stats(),
  });
  Object.assign(port.observer, {
    call: metrics.observeCall,
    cut: (why: string) => metrics.observeCut("grpc", why),
  });
  const stopping = new AbortController();
  const leaving = new AbortController();
  const { identify, peerOf, tokenWatch: tokens, streamOf } = port;
  const serving: ServeOptions = {
    ...{ identify, peerOf, log, tokens, streamOf, monotonicMs },
    observe: metrics.observeCall,
    stopping: stopping.signal,
  };
  const definitions = addFollowerServices(options, {
    port,
    link,
    directory,
    serving,
    leaving: leaving.signal,
  });
  let isProven = false;
  const stopReporting = reportToLeader({
    own: ownPlace(options),
    ...{ store, clock, log },
    client: (signal) => link.client(signal),
    onAnswer: ({ decides }) => {
      isProven ||= decides;
    },
  });
  const http = await openHttp(options, port, metrics, () => readinessOf(store, link));
  port.observer.material = (material) => http.reload(material);
  const plain = await openPlain(options, directory, serving);
  const address = await port.listen();
  log.info({ event: "coordinator-follows", grpc: address, revision: store.revision }, "coordinator-follows");
  const leave = async (): Promise<void> => {
    stopHealth();
    stopWatching();
    leaving.abort();
    stopReporting();
    link.close();
    await http.close();
  };
  return {
    ...{ state, directory, port, address, plain, stopping },
    get isProven() {
      return isProven;
    },
    observe: (leader) => {
      if (leader.holder !== link.leader?.holder)
        log.info({ event: "leader-seen", leader: leader.name, addresses: leader.addresses }, "leader-seen");
      link.observe(leader);
    },
    status: () => `following: ${link.leader?.name ?? "another coordinator"} leads`,
    handOver: async () => {
      await leave();
      for (const definition of definitions) port.server.removeService(definition);
    },
    close: async () => {
      stopping.abort();
      await Promise.all([leave(), port.close(CLOSE_GRACE_MS), plain?.close(CLOSE_GRACE_MS)]);
      over.abort();
      await following;
      directory.close();
    },
  };
}

/** Returns the services that were added. */
function addFollowerServices(
  { store, clock, log, further }: FollowerOptions,
  parts: {
    readonly port: GrpcPort;
    readonly link: LeaderLink;
    readonly directory: Directory;
    readonly serving: ServeOptions;
    readonly leaving: AbortSignal;
  },
): readonly ServiceDefinition[] {
  const { port, link, directory, serving, leaving } = parts;
  const { server, identify, peerOf } = port;
  const notForwarded = [...ownDefinitions, ...leaderDefinitions];
  const forwarded = [...servedDefinitions, ...further].filter((it) => !notForwarded.includes(it));
  const { monotonicMs, observe } = serving;
  for (const definition of forwarded)
    forward(server, definition, {
      ...{ identify, peerOf, log, monotonicMs, stopping: leaving },
      ...(observe && { observe }),
      client: (signal) => link.client(signal),
    });
  const all = [...ownDefinitions, ...forwarded];
  const health = { health: () => ({ status: readinessOf(store, link).ready ? "ok" : "behind" }) };
  addStandardServices(server, all, { store: health, clock }, serving);
  addDestination(server, { directory, authorize: true }, serving);
  return all;
}

async function openHttp(
  { config, authority }: FollowerOptions,
  { names }: GrpcPort,
  metrics: ReturnType<typeof createFollowerMetrics>,
  readiness: () => Readiness,
): Promise<HttpServer> {
  const listen = hostPort(config.http.listen);
  return startHttpServer({
    ...{ listen, metrics, readiness },
    ...(config.http.tls && { tls: await serverMaterial(authority, [listen.host, ...names]) }),
    routes: (app) => {
      app.all("*", (c) => c.json({ error: "another coordinator leads and serves the JSON API" }, 503));
    },
  });
}

function openPlain({ config, clock }: FollowerOptions, directory: Directory, serving: ServeOptions) {
  if (config.destination === "off") return undefined;
  return startPlainDestination(
    hostPort(config.destination.listen),
    { directory, authorize: false },
    { ...serving, schedule: clock.schedule },
  );
}

function readinessOf(store: FollowedStore, { leader }: LeaderLink): Readiness {
  const { behindMs } = store;
  const role = {
    leads: false,
    ...(leader && { leader: leader.name }),
    behindSeconds: Math.round(behindMs / 100) / 10,
  };
  const health = store.health();
  const broken =
    health.status === "read-only" && health.reason === "io-error" ? [`store: ${health.message}`] : [];
  const behind =
    behindMs > BEHIND_MS
      ? [`the store was not read for ${Math.round(behindMs / 1000)} s: etcd does not answer`]
      : [];
  const reasons = [...broken, ...behind];
  return { ready: reasons.length === 0, reasons, role };
}
