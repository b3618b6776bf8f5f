import { randomBytes } from "node:crypto";
import { objectHandlers } from "./api/objects/handlers.ts";
import { metricHandlers } from "./api/operator/metric-handlers.ts";
import type { OperatorOptions } from "./api/operator/service.ts";
import { certificateHandlers } from "./certificates/handlers.ts";
import type { Config } from "./config.ts";
import type { LiveWorkspaces } from "./dashboard/live/workspace-row.ts";
import { openDashboard } from "./dashboard/open-dashboard.ts";
import type { StoredBrowsers } from "./dashboard/stored-browsers.ts";
import type { ApiCallOptions } from "./http/api/call.ts";
import { addCertificateRoutes } from "./http/api/certificate-routes.ts";
import { addEventRoutes } from "./http/api/event-routes.ts";
import { addMetricRoutes } from "./http/api/metric-routes.ts";
import { addObjectRoutes } from "./http/api/object-routes.ts";
import { addPlanRoutes } from "./http/api/plan-routes.ts";
import { addIdentityRoutes } from "./http/identity-routes.ts";
import type { Metrics } from "./http/metrics.ts";
import { podDomainOf } from "./http/pod-domain.ts";
import type { HttpContent } from "./http/server.ts";
import type { IdentityIssuer } from "./objects/identity-issuer.ts";
import type { TokenWatch } from "./rpc/token-watch.ts";
import type { Clock } from "./time/clock.ts";

/** The components behind the HTTP port. */
export interface HttpOptions {
  readonly metrics: Metrics;
  readonly operator: OperatorOptions;
  readonly workspaces: LiveWorkspaces | undefined;
  readonly calls: ApiCallOptions;
  readonly tokenWatch: TokenWatch;
  readonly refusal: () => string | undefined;
  readonly stopping: AbortSignal;
}

export interface HttpRouteOptions extends HttpOptions {
  readonly issuer: IdentityIssuer;
  /**
   * The sessions of the dashboard and the opened pod ports that survive a restart of the
   * coordinator.
   */
  readonly stored: StoredBrowsers;
  readonly clock: Clock;
  /** The file with the pages of the dashboard. */
  readonly dashboardPath: string | undefined;
  readonly config: Pick<Config, "cluster" | "http">;
}

/** Returns the routes of a leader, and a function that ends the sessions of the dashboard. */
export function httpRoutes(options: HttpRouteOptions): {
  readonly routes: NonNullable<HttpContent["routes"]>;
  readonly otherHosts: HttpContent["otherHosts"];
  readonly close: () => void;
} {
  const { operator, workspaces, calls, stopping, tokenWatch, issuer, clock, config } = options;
  const dashboard = openDashboard({
    ...{ ...calls, operator, workspaces, clock, tokens: tokenWatch, stopping, randomBytes },
    ...{ assetsPath: options.dashboardPath ?? "", cluster: config.cluster },
    podDomain: podDomainOf(config.http),
    stored: options.stored,
  });
  return {
    otherHosts: dashboard.otherHosts,
    routes: (app) => {
      addIdentityRoutes(app, issuer);
      // These routes precede those of objects, which match any plural.
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
    close: () => dashboard.close(),
  };
}
