import type { HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import { findPresentPod, nodeOfPod } from "../api/operator/find.ts";
import { type OperatorOptions, operatorService } from "../api/operator/service.ts";
import { certificateViews } from "../certificates/handlers.ts";
import { dialThrough } from "../forwarding/dial-pod.ts";
import type { ApiCallOptions } from "../http/api/call.ts";
import type { OtherHosts } from "../http/other-hosts.ts";
import type { Caller } from "../rpc/caller.ts";
import type { TokenWatch } from "../rpc/token-watch.ts";
import type { Clock } from "../time/clock.ts";
import { Assets } from "./assets.ts";
import { History } from "./history.ts";
import { LiveTables } from "./live/live-tables.ts";
import type { LiveWorkspaces } from "./live/workspace-row.ts";
import { PodPorts } from "./pod-ports/pod-ports.ts";
import { addDashboardRoutes } from "./routes.ts";
import { DashboardSessions } from "./sessions.ts";
import type { StoredBrowsers } from "./stored-browsers.ts";
import { Streams } from "./streams.ts";
import { UsageHistory } from "./usage-history.ts";

export interface DashboardOptions extends ApiCallOptions {
  /** The path of the file with the page, which the build makes. It is read at the first request. */
  readonly assetsPath: string;
  /** The cluster's name. */
  readonly cluster: string;
  readonly operator: OperatorOptions;
  /** The workspaces; undefined if the coordinator serves none. */
  readonly workspaces: LiveWorkspaces | undefined;
  readonly clock: Clock;
  readonly tokens: Pick<TokenWatch, "watch">;
  readonly randomBytes: (count: number) => Uint8Array;
  /** The domain of the host names of opened pod ports; undefined if they are not served. */
  readonly podDomain: string | undefined;
  /**
   * Sessions and opened ports that were stored, so that they survive a restart of the coordinator.
   */
  readonly stored: StoredBrowsers;
  /** Aborts when the server stops. */
  readonly stopping: AbortSignal;
}

export interface Dashboard {
  /** The host names of opened pod ports. */
  readonly otherHosts: OtherHosts | undefined;
  addTo(app: Hono<{ Bindings: HttpBindings }>): void;
  close(): void;
}

/**
 * Creates the dashboard. Until a browser connects, it only takes samples, in memory of fixed size.
 */
export function openDashboard(options: DashboardOptions): Dashboard {
  const { operator, workspaces, clock, identify, randomBytes, tokens, stopping, stored } = options;
  const sessions = new DashboardSessions({
    ...{ findToken: identify.findToken, clock, randomBytes, stored: stored.sessions },
    watchToken: (tokenId, lapse) => tokens.watch(holderOf(tokenId), lapse),
  });
  const { state, autoscale, metrics } = operator;
  const history = new History({ state, clock, autoscale });
  const usage = new UsageHistory({ state, clock, usage: metrics.usage });
  const podPorts = openPodPorts(options, sessions);
  return {
    otherHosts: podPorts,
    addTo: (app) =>
      addDashboardRoutes(app, {
        ...options,
        storedSessions: stored.sessions,
        sessions,
        history,
        usage,
        podPorts,
        assets: new Assets(options.assetsPath),
        streams: new Streams({ tokens, stopping }),
        tables: new LiveTables({ ...operator, workspaces, liveCertificates: certificateViews(operator) }),
        issuer: operator.certificates?.issuer.name ?? "",
        handlers: operatorService(operator),
        schedule: clock.schedule,
      }),
    close: () => {
      // Ports are closed before sessions, so that stored ports survive and continue at the next
      // coordinator.
      podPorts?.close();
      sessions.close();
      history.close();
      usage.close();
    },
  };
}

function holderOf(tokenId: string): Caller {
  return { type: "user", name: `token:${tokenId}`, grants: [], tokenId };
}

function openPodPorts(
  { podDomain, operator, clock, randomBytes, stored }: DashboardOptions,
  sessions: DashboardSessions,
): PodPorts | undefined {
  if (podDomain === undefined) return undefined;
  const { state, broker, namespaceRules, podUse } = operator;
  return new PodPorts({
    ...{ domain: podDomain, clock, randomBytes },
    dial: dialThrough(broker),
    stored: stored.ports,
    sessionOf: (key) => sessions.byKey(key),
    callerOf: (session) => sessions.callerOf(session),
    findPod: (namespace, name, caller) => {
      const pod = findPresentPod(state, namespace, name, clock.nowMs());
      namespaceRules.checkSession(pod.record, caller);
      nodeOfPod(pod);
      return pod;
    },
    beginUse: ({ record }) => podUse.begin(record),
  });
}
