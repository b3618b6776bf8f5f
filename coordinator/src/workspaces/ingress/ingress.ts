import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock } from "@forage/common/clock";
import { LOGIN_PATH, verifyLoginCode } from "@forage/identity/workspace-login";
import type { DialPod, PodPlace } from "../../forwarding/dial-pod.ts";
import type { ForwardRules, RequestOrigin } from "../../forwarding/forward-headers.ts";
import { forwardRequest, refuse } from "../../forwarding/forward-request.ts";
import { forwardUpgrade, refuseUpgrade } from "../../forwarding/forward-upgrade.ts";
import { PodAgent } from "../../forwarding/pod-agent.ts";
import { Shares } from "../../rpc/shares.ts";
import type { AccessStats, RefusalReason } from "../access/access-stats.ts";
import type { ActivityMeter } from "../access/activity-meter.ts";
import type { UsedCodes } from "../access/used-codes.ts";
import type { ReachableWorkspace, WorkspaceDirectory } from "../access/workspace-directory.ts";
import { authorizeVisit, TOKEN_HEADER } from "./authorize-visit.ts";
import { HostPatterns, type UrlTemplates } from "./host-patterns.ts";
import { OpenVisits } from "./open-visits.ts";
import { ownerCookie, ownerCookieName, withoutOwnerCookies } from "./owner-cookie.ts";

export interface IngressOptions {
  readonly templates: UrlTemplates;
  readonly directory: WorkspaceDirectory;
  readonly dial: DialPod;
  readonly activity: ActivityMeter;
  readonly clock: Pick<Clock, "nowMs" | "schedule">;
  readonly codes: Pick<UsedCodes, "use">;
  readonly stats: AccessStats;
  /** The port in the workspace to which its own URL leads. */
  readonly workspacePort: number;
  readonly connectionsPerWorkspace: number;
}

/**
 * The most connections to one port. A browser opens six to one host, and several people may use one
 * application.
 */
const CONNECTIONS_PER_PORT = 64;
/**
 * The most open requests and WebSockets. It is below the limit of all sessions, so that logs and
 * commands still work while workspaces are busy.
 */
const MAX_OPEN_REQUESTS = 500;

const RULES: ForwardRules = {
  target: "the workspace",
  hiddenHeaders: [TOKEN_HEADER],
  withoutOwnCookies: withoutOwnerCookies,
  // Each workspace has its own host and checks its own token.
  setsOwnCookie: () => false,
};

interface Found {
  readonly workspace: ReachableWorkspace;
  readonly pod: PodPlace;
  readonly port: number;
  readonly release: () => void;
}

interface Refusal {
  readonly status: number;
  readonly reason: RefusalReason;
  readonly message: string;
}

const NO_WORKSPACE: Refusal = {
  ...{ status: 404, reason: "no-workspace" },
  message: "there is no such workspace",
};
const SPENT_LINK: Refusal = {
  ...{ status: 403, reason: "login-link" },
  message: "the login link has expired or was used: make another one",
};
const TOO_MANY: Refusal = {
  ...{ status: 503, reason: "too-many" },
  message: "the workspace has too many open requests: try again later",
};

/**
 * Serves the URLs of workspaces and of their ports. Finds the workspace by the host name, and
 * checks the owner token.
 */
export class Ingress {
  readonly #options: IngressOptions;
  readonly #patterns: HostPatterns;
  readonly #agent: PodAgent;
  readonly #shares: Shares;
  readonly #visits = new OpenVisits();

  constructor(options: IngressOptions) {
    this.#options = options;
    this.#patterns = new HostPatterns(options.templates);
    this.#agent = new PodAgent(options.dial, CONNECTIONS_PER_PORT, options.clock);
    this.#shares = new Shares({
      what: "requests to workspaces",
      total: MAX_OPEN_REQUESTS,
      ofUser: options.connectionsPerWorkspace,
      isFair: true,
    });
  }

  /**
   * Closes the open requests and WebSockets of a changed workspace whose visitors may no longer
   * reach it.
   */
  recheck(instanceId: string): void {
    this.#visits.recheck(instanceId);
  }

  async serve(request: IncomingMessage, response: ServerResponse, arrival: RequestOrigin): Promise<void> {
    if (request.url?.split("?", 1)[0] === LOGIN_PATH) {
      await this.#logIn(request, response, arrival);
      return;
    }
    const found = this.#admit(request);
    if ("status" in found) {
      this.#refuse(response, found);
      return;
    }
    const done = this.#begin(request, found, () => response.destroy());
    try {
      await forwardRequest(request, response, this.#agent.target(found.pod, found.port), arrival, RULES);
    } finally {
      done();
    }
  }

  async upgrade(
    request: IncomingMessage,
    client: Duplex,
    head: Buffer,
    arrival: RequestOrigin,
  ): Promise<void> {
    const found = this.#admit(request);
    if ("status" in found) {
      this.#options.stats.refused("ingress", found.reason);
      refuseUpgrade(client, found.status, found.message);
      return;
    }
    const done = this.#begin(request, found, () => client.destroy());
    try {
      const dial = () => this.#options.dial(found.pod, found.port);
      await forwardUpgrade(request, client, head, arrival, RULES, dial);
    } finally {
      done();
    }
  }

  /** Closes the connections to workspaces. */
  close(): void {
    this.#agent.destroy();
  }

  /** Counts a visit until it ends, and closes it if a change of the workspace forbids it. */
  #begin(request: IncomingMessage, { workspace, port, release }: Found, cut: () => void): () => void {
    const { instanceId } = workspace;
    const { activity, stats, directory, templates } = this.#options;
    const { headers } = request;
    const isAllowed = (): boolean => {
      const now = directory.byInstanceId(instanceId);
      return now !== undefined && authorizeVisit(now, port, headers, templates.host).type === "allowed";
    };
    const ends = [
      ...[activity.begin(instanceId), stats.begin("ingress"), release],
      this.#visits.add(instanceId, { isAllowed, cut }),
    ];
    return () => {
      for (const end of ends) end();
    };
  }

  #refuse(response: ServerResponse, { status, reason, message }: Refusal): void {
    this.#options.stats.refused("ingress", reason);
    refuse(response, status, message);
  }

  #admit(request: IncomingMessage): Found | Refusal {
    const target = this.#find(request.headers.host);
    if (target === undefined) return NO_WORKSPACE;
    const { workspace, port } = target;
    const visit = authorizeVisit(workspace, port, request.headers, this.#options.templates.host);
    if (visit.type === "refused")
      return { status: visit.status, reason: "not-authorized", message: visit.message };
    if (visit.by === "cookie" && this.#isFromAnotherWorkspace(request, workspace))
      return {
        ...{ status: 403, reason: "not-authorized" },
        message: "a page of another workspace can't use this workspace's cookie",
      };
    if (workspace.pod === undefined)
      return { status: 503, reason: "no-node", message: "the workspace has no node yet" };
    const release = this.#shares.tryAcquire(workspace.instanceId);
    return release === undefined ? TOO_MANY : { workspace, pod: workspace.pod, port, release };
  }

  #find(
    host: string | undefined,
  ): { readonly workspace: ReachableWorkspace; readonly port: number } | undefined {
    const { directory, workspacePort } = this.#options;
    for (const { by, name, port = workspacePort } of this.#patterns.targetsOf(host ?? "")) {
      const workspace = by === "id" ? directory.byInstanceId(name) : directory.byPrefix(name);
      if (workspace !== undefined) return { workspace, port };
    }
    return undefined;
  }

  /**
   * Reports whether a page of another workspace sent the request. Workspaces share a domain, so
   * browsers send a workspace's cookie with such requests as well.
   */
  #isFromAnotherWorkspace({ headers }: IncomingMessage, workspace: ReachableWorkspace): boolean {
    if (headers.origin === undefined || !URL.canParse(headers.origin)) return false;
    const origin = this.#find(new URL(headers.origin).host);
    return origin !== undefined && origin.workspace.instanceId !== workspace.instanceId;
  }

  /** Exchanges a one-time code for a cookie. */
  async #logIn(request: IncomingMessage, response: ServerResponse, arrival: RequestOrigin): Promise<void> {
    const target = this.#find(request.headers.host);
    if (target === undefined) return this.#refuse(response, NO_WORKSPACE);
    const refusal = await this.#loginRefusal(request, target.workspace);
    if (refusal !== undefined) return this.#refuse(response, refusal);
    const { instanceId, ownerToken } = target.workspace;
    const isSecure = arrival.proto === "https" || request.headers["x-forwarded-proto"] === "https";
    const name = ownerCookieName(this.#options.templates.host, instanceId);
    response.writeHead(303, {
      location: "/",
      "set-cookie": ownerCookie(name, ownerToken, isSecure),
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
    });
    response.end();
  }

  async #loginRefusal(
    request: IncomingMessage,
    { ownerToken }: ReachableWorkspace,
  ): Promise<Refusal | undefined> {
    const reason = "login-link";
    if (request.method !== "GET") return { status: 405, reason, message: "a login link is opened with GET" };
    const host = (request.headers.host ?? "").replace(/:\d+$/, "");
    const code = new URLSearchParams(request.url?.split("?")[1]).get("code") ?? "";
    const result = verifyLoginCode(code, { ownerToken, host, nowMs: this.#options.clock.nowMs() });
    switch (result.type) {
      case "malformed":
        return { status: 400, reason, message: "the login link is incomplete" };
      case "mismatch":
        return { status: 403, reason, message: "the login link is not for this workspace" };
      case "expired":
        return SPENT_LINK;
      case "accepted":
        return (await this.#options.codes.use(result.nonce, result.expiresMs)) ? undefined : SPENT_LINK;
      default:
        return result satisfies never;
    }
  }
}
