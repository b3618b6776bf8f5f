import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock } from "@forage/common/clock";
import { LOGIN_PATH, verifyLoginCode } from "@forage/identity/workspace-login";
import type { ActivityMeter } from "../access/activity-meter.ts";
import type { DialPod, PodPlace } from "../access/dial-workspace.ts";
import type { ReachableWorkspace, WorkspaceDirectory } from "../access/workspace-directory.ts";
import { authorizeVisit } from "./authorize-visit.ts";
import type { Arrival } from "./forward-headers.ts";
import { forwardRequest, refuse } from "./forward-request.ts";
import { forwardUpgrade, refuseUpgrade } from "./forward-upgrade.ts";
import { HostPatterns, type UrlTemplates } from "./host-patterns.ts";
import { ownerCookie, ownerCookieName } from "./owner-cookie.ts";
import { UsedCodes } from "./used-codes.ts";
import { WorkspaceAgent } from "./workspace-agent.ts";

export interface IngressOptions {
  readonly templates: UrlTemplates;
  readonly directory: WorkspaceDirectory;
  readonly dial: DialPod;
  readonly activity: ActivityMeter;
  readonly clock: Pick<Clock, "nowMs">;
  /** Port that a workspace's own URL leads to. */
  readonly workspacePort: number;
  readonly connectionsPerWorkspace: number;
}

/** A browser opens six at a time to one host, and several people may use one application. */
const CONNECTIONS_PER_PORT = 64;
/** Below the limit of all sessions, so that logs and commands get through however busy workspaces are. */
const CONNECTIONS = 600;

interface Found {
  readonly workspace: ReachableWorkspace;
  readonly pod: PodPlace;
  readonly port: number;
}

interface Refusal {
  readonly status: number;
  readonly message: string;
}

const NO_WORKSPACE: Refusal = { status: 404, message: "there is no such workspace" };
const SPENT_LINK: Refusal = {
  status: 403,
  message: "the login link has expired or was used: make another one",
};

/** Serves the URLs of workspaces and of their ports. It finds the workspace by the host name, and checks the owner token. */
export class Ingress {
  readonly #options: IngressOptions;
  readonly #patterns: HostPatterns;
  readonly #agent: WorkspaceAgent;
  readonly #usedCodes: UsedCodes;

  constructor(options: IngressOptions) {
    this.#options = options;
    this.#patterns = new HostPatterns(options.templates);
    const limits = { connectionsPerPort: CONNECTIONS_PER_PORT, connections: CONNECTIONS };
    this.#agent = new WorkspaceAgent(options.dial, limits);
    this.#usedCodes = new UsedCodes(options.clock.nowMs);
  }

  async serve(request: IncomingMessage, response: ServerResponse, arrival: Arrival): Promise<void> {
    if (request.url?.split("?", 1)[0] === LOGIN_PATH) {
      this.#logIn(request, response, arrival);
      return;
    }
    const found = this.#admit(request);
    if ("status" in found) {
      refuse(response, found.status, found.message);
      return;
    }
    const done = this.#options.activity.begin(found.workspace.instanceId);
    try {
      await forwardRequest(request, response, this.#agent.target(found.pod, found.port), arrival);
    } finally {
      done();
    }
  }

  async upgrade(request: IncomingMessage, client: Duplex, head: Buffer, arrival: Arrival): Promise<void> {
    const found = this.#admit(request);
    if ("status" in found) {
      refuseUpgrade(client, found.status, found.message);
      return;
    }
    const done = this.#options.activity.begin(found.workspace.instanceId);
    try {
      const dial = () => this.#options.dial(found.pod, found.port);
      await forwardUpgrade(request, client, head, arrival, dial);
    } finally {
      done();
    }
  }

  /** Ends the connections to workspaces. */
  close(): void {
    this.#agent.destroy();
  }

  #admit(request: IncomingMessage): Found | Refusal {
    const target = this.#find(request.headers.host);
    if (target === undefined) return NO_WORKSPACE;
    const { workspace, port } = target;
    const visit = authorizeVisit(workspace, port, request.headers, this.#options.templates.host);
    if (visit.type === "refused") return visit;
    if (visit.by === "cookie" && this.#isFromAnotherWorkspace(request, workspace))
      return { status: 403, message: "a page of another workspace can't use this workspace's cookie" };
    if (workspace.pod === undefined) return { status: 503, message: "the workspace has no node yet" };
    if (this.#options.activity.openOf(workspace.instanceId) >= this.#options.connectionsPerWorkspace)
      return { status: 503, message: "the workspace has too many open requests: try again later" };
    return { workspace, pod: workspace.pod, port };
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

  /** Workspaces are sites of the same domain, so that browsers send a cookie with the requests of others' pages as well. */
  #isFromAnotherWorkspace({ headers }: IncomingMessage, workspace: ReachableWorkspace): boolean {
    if (headers.origin === undefined || !URL.canParse(headers.origin)) return false;
    const origin = this.#find(new URL(headers.origin).host);
    return origin !== undefined && origin.workspace.instanceId !== workspace.instanceId;
  }

  /** Turns a one-time code into a cookie. */
  #logIn(request: IncomingMessage, response: ServerResponse, arrival: Arrival): void {
    const target = this.#find(request.headers.host);
    const refusal = target === undefined ? NO_WORKSPACE : this.#loginRefusal(request, target.workspace);
    if (target === undefined || refusal !== undefined) {
      refuse(response, refusal?.status ?? 404, refusal?.message ?? "");
      return;
    }
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

  #loginRefusal(request: IncomingMessage, { ownerToken }: ReachableWorkspace): Refusal | undefined {
    if (request.method !== "GET") return { status: 405, message: "a login link is opened with GET" };
    const host = (request.headers.host ?? "").replace(/:\d+$/, "");
    const code = new URLSearchParams(request.url?.split("?")[1]).get("code") ?? "";
    const result = verifyLoginCode(code, { ownerToken, host, nowMs: this.#options.clock.nowMs() });
    switch (result.type) {
      case "malformed":
        return { status: 400, message: "the login link is incomplete" };
      case "mismatch":
        return { status: 403, message: "the login link is not for this workspace" };
      case "expired":
        return SPENT_LINK;
      case "accepted":
        return this.#usedCodes.use(result.nonce, result.expiresMs) ? undefined : SPENT_LINK;
      default:
        return result satisfies never;
    }
  }
}
