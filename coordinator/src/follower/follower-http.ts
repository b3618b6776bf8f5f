import { STALE_HEADER } from "@forage/common/stale-header";
import type { Authority } from "../authority/authority.ts";
import { type Config, hostPort } from "../config.ts";
import type { EventLog } from "../events/event-log.ts";
import type { GrpcPort } from "../grpc-port.ts";
import { type ApiCallOptions, type Bound, failed } from "../http/api/call.ts";
import { addEventRoutes } from "../http/api/event-routes.ts";
import { addObjectRoutes, type ObjectRouteOptions } from "../http/api/object-routes.ts";
import { addIdentityRoutes } from "../http/identity-routes.ts";
import type { Metrics } from "../http/metrics.ts";
import type { PassCounts } from "../http/passed/pass-counts.ts";
import { passHosts } from "../http/passed/pass-hosts.ts";
import { type PassHttpOptions, passHttp } from "../http/passed/pass-http.ts";
import { httpNamesOf, isPodHost, podDomainOf } from "../http/pod-domain.ts";
import { type HttpServer, type Readiness, startHttpServer } from "../http/server.ts";
import { serverMaterial } from "../identity.ts";
import type { IdentityIssuer } from "../objects/identity-issuer.ts";
import type { Clock } from "../time/clock.ts";
import { BEHIND_MS } from "./readiness.ts";

export interface FollowerHttpOptions {
  readonly config: Pick<Config, "http">;
  readonly authority: Authority;
  readonly issuer: Pick<IdentityIssuer, "issuer" | "publicKeys">;
  readonly clock: Pick<Clock, "schedule">;
}

export interface FollowerHttpDependencies extends PassHttpOptions {
  readonly port: Pick<GrpcPort, "names" | "tokenWatch">;
  readonly metrics: Metrics;
  readonly readiness: () => Readiness;
  readonly calls: ApiCallOptions;
  readonly events: EventLog;
  readonly passCounts: PassCounts;
  readonly handlers: ObjectRouteOptions["handlers"];
  readonly stopping: AbortSignal;
  /** Returns the milliseconds since the view was last known to be complete. */
  readonly behindMs: () => number;
}

/**
 * Requests that only need the view and the store. The pages of the dashboard need the leader's
 * memory.
 */
const SERVED_HERE = [
  /^\/\.well-known\//,
  /^\/api\/v1\/(namespaces\/[^/]+\/)?events$/,
  /^\/api\/v1\/namespaces\/[^/]+\/(secrets|configmaps|registrycredentials|persistentvolumeclaims)(\/[^/]+)?$/,
  /^\/api\/v1\/priorityclasses(\/[^/]+)?$/,
];
/**
 * The status of an answer that the leader replaces: a follower never answers that something does
 * not exist, see `mayDeny`, because the leader may have acknowledged it.
 */
const UNKNOWN_HERE = 503;
/** The longest time for which a request that can be served here waits for the leader. */
const PATIENCE_MS = 300;

/**
 * Opens the HTTP port of a follower. Requests that are not served here are passed on to the leader.
 */
export async function openFollowerHttp(
  { config, authority, issuer, clock }: FollowerHttpOptions,
  dependencies: FollowerHttpDependencies,
): Promise<HttpServer> {
  const { port, metrics, readiness, events, handlers, stopping, behindMs } = dependencies;
  const calls = { ...dependencies.calls, mayDeny: () => false };
  const listen = hostPort(config.http.listen);
  const podDomain = podDomainOf(config.http);
  return startHttpServer({
    ...{ listen, metrics, readiness },
    ...(config.http.tls && { tls: await serverMaterial(authority, httpNamesOf(config.http, port.names)) }),
    // Requests to pods' host names never reach the routes, because pages of pods must share no
    // origin with the dashboard.
    otherHosts: passHosts({
      ...{ owns: (host) => isPodHost(host, podDomain), client: dependencies.client },
      count: dependencies.passCounts.http,
    }),
    routes: (app) => {
      app.use("*", async (c, next) => {
        const isServedHere = readsHere(c);
        if (isServedHere && behindMs() <= BEHIND_MS) return readHere(c, next, dependencies);
        try {
          return await passHttp(c, dependencies, isServedHere ? PATIENCE_MS : undefined);
        } catch (error) {
          if (!isServedHere) return failed(c, error);
          c.header(STALE_HEADER, String(Math.round(behindMs())));
          return next();
        }
      });
      addIdentityRoutes(app, issuer);
      const { schedule } = clock;
      addEventRoutes(app, { ...calls, events, schedule, tokens: port.tokenWatch, stopping });
      addObjectRoutes(app, { ...calls, handlers });
    },
  });
}

/**
 * Answers from the view. A request for an object that is not in the view is passed on to the
 * leader.
 */
async function readHere(c: Bound, next: () => Promise<void>, options: PassHttpOptions): Promise<void> {
  await next();
  if (c.res.status !== UNKNOWN_HERE) return;
  const passed = await passHttp(c, options, PATIENCE_MS).catch(() => undefined);
  if (passed === undefined) return;
  c.res = undefined;
  c.res = passed;
}

function readsHere(c: Bound): boolean {
  const { method, path } = c.req;
  return method === "GET" && c.req.query("reveal") !== "true" && SERVED_HERE.some((it) => it.test(path));
}
