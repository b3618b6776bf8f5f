import type { HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import { type OperatorOptions, operatorService } from "../api/operator/service.ts";
import { certificateViews } from "../certificates/handlers.ts";
import type { ApiCallOptions } from "../http/api/call.ts";
import type { TokenWatch } from "../rpc/token-watch.ts";
import type { Clock } from "../time/clock.ts";
import { Assets } from "./assets.ts";
import { History } from "./history.ts";
import { LiveTables } from "./live/live-tables.ts";
import type { LiveWorkspaces } from "./live/workspace-row.ts";
import { addDashboardRoutes } from "./routes.ts";
import { DashboardSessions } from "./sessions.ts";
import { Streams } from "./streams.ts";
import { UsageHistory } from "./usage-history.ts";

export interface DashboardOptions extends ApiCallOptions {
  /** The file with the page, as the build makes it. It is read at the first request for the page. */
  readonly assetsPath: string;
  /** The cluster's name. */
  readonly cluster: string;
  readonly operator: OperatorOptions;
  /** Undefined: the coordinator serves no workspaces. */
  readonly workspaces: LiveWorkspaces | undefined;
  readonly clock: Clock;
  readonly tokens: Pick<TokenWatch, "watch">;
  readonly randomBytes: (count: number) => Uint8Array;
  /** Aborts when the server stops. */
  readonly stopping: AbortSignal;
}

export interface Dashboard {
  addTo(app: Hono<{ Bindings: HttpBindings }>): void;
  close(): void;
}

/** Puts the parts of the dashboard together. Until a browser comes it only takes samples, into rings of fixed size. */
export function openDashboard(options: DashboardOptions): Dashboard {
  const { operator, workspaces, clock, identify, randomBytes, tokens, stopping } = options;
  const sessions = new DashboardSessions({ findToken: identify.findToken, clock, randomBytes });
  const { state, autoscale, metrics } = operator;
  const history = new History({ state, clock, autoscale });
  const usage = new UsageHistory({ state, clock, usage: metrics.usage });
  return {
    addTo: (app) =>
      addDashboardRoutes(app, {
        ...options,
        sessions,
        history,
        usage,
        assets: new Assets(options.assetsPath),
        streams: new Streams({ tokens, stopping }),
        tables: new LiveTables({ ...operator, workspaces, liveCertificates: certificateViews(operator) }),
        issuer: operator.certificates?.issuer.name ?? "",
        handlers: operatorService(operator),
        schedule: clock.schedule,
      }),
    close: () => {
      sessions.close();
      history.close();
      usage.close();
    },
  };
}
