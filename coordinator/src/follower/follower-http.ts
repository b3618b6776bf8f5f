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

export interface FollowerHttpParts extends PassHttpOptions {
  readonly port: Pick<GrpcPort, "names" | "tokenWatch">;
  readonly metrics: Metrics;
  readonly readiness: () => Readiness;
  readonly calls: ApiCallOptions;
  readonly events: EventLog;
  readonly handlers: ObjectRouteOptions["handlers"];
  readonly stopping: AbortSignal;
  /** Milliseconds since the view had all of the store. */
  readonly behindMs: () => number;
}

/** Requests that only read what the view and the store have. The pages of the dashboard need the leader's memory. */
const SERVED_HERE = [
  /^\/\.well-known\//,
  /^\/api\/v1\/(namespaces\/[^/]+\/)?events$/,
  /^\/api\/v1\/namespaces\/[^/]+\/(secrets|configmaps|registrycredentials|persistentvolumeclaims)(\/[^/]+)?$/,
  /^\/api\/v1\/priorityclasses(\/[^/]+)?$/,
];
const PODS_AT_LEADER =
  "ports of pods open at the coordinator that leads: open its dashboard, or forward the port to this computer with the command line\n";
/** This coordinator denies nothing, see `mayDeny`: the leader may have acknowledged what it has not read. */
const UNKNOWN_HERE = 503;
/** A request that can be served here waits no longer for the leader. */
const PATIENCE_MS = 300;

/** Opens the port for HTTP while another coordinator leads. Requests that are not served here are passed on to that one. */
export async function openFollowerHttp(
  { config, authority, issuer, clock }: FollowerHttpOptions,
  parts: FollowerHttpParts,
): Promise<HttpServer> {
  const { port, metrics, readiness, events, handlers, stopping, behindMs } = parts;
  const calls = { ...parts.calls, mayDeny: () => false };
  const listen = hostPort(config.http.listen);
  const podDomain = podDomainOf(config.http);
  return startHttpServer({
    ...{ listen, metrics, readiness },
    ...(config.http.tls && { tls: await serverMaterial(authority, httpNamesOf(config.http, port.names)) }),
    routes: (app) => {
      app.use("*", async (c, next) => {
        // Pages of pods must share no origin with the dashboard.
        if (isPodHost(c.req.header("host"), podDomain)) return c.text(PODS_AT_LEADER, 421);
        const isServedHere = readsHere(c);
        if (isServedHere && behindMs() <= BEHIND_MS) return readHere(c, next, parts);
        try {
          return await passHttp(c, parts, isServedHere ? PATIENCE_MS : undefined);
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

/** Answers from the view. A request for something that the view doesn't have is passed on to the leader. */
async function readHere(c: Bound, next: () => Promise<void>, parts: PassHttpOptions): Promise<void> {
  await next();
  if (c.res.status !== UNKNOWN_HERE) return;
  const passed = await passHttp(c, parts, PATIENCE_MS).catch(() => undefined);
  if (passed === undefined) return;
  c.res = undefined;
  c.res = passed;
}

function readsHere(c: Bound): boolean {
  const { method, path } = c.req;
  return method === "GET" && c.req.query("reveal") !== "true" && SERVED_HERE.some((it) => it.test(path));
}
