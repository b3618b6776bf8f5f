import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { CoordinatorError } from "../../errors.ts";
import type { DialPod, PodPlace } from "../../forwarding/dial-pod.ts";
import type { ForwardRules, RequestOrigin } from "../../forwarding/forward-headers.ts";
import { forwardRequest, refuse } from "../../forwarding/forward-request.ts";
import { forwardUpgrade, refuseUpgrade } from "../../forwarding/forward-upgrade.ts";
import { PodAgent } from "../../forwarding/pod-agent.ts";
import type { OtherHosts } from "../../http/other-hosts.ts";
import { podPortId } from "../../http/pod-domain.ts";
import { assertNamespace } from "../../rpc/access.ts";
import type { Caller } from "../../rpc/caller.ts";
import { Shares } from "../../rpc/shares.ts";
import type { PodEntry } from "../../state/entries.ts";
import type { Clock } from "../../time/clock.ts";
import type { DashboardSession } from "../sessions.ts";
import { type OpenedPort, OpenedPorts, type OpenedPortsOptions, SECRET_LENGTH } from "./opened-ports.ts";

export interface PodPortsOptions extends Pick<OpenedPortsOptions, "stored" | "sessionOf"> {
  /** The domain of the ports' host names. */
  readonly domain: string;
  readonly clock: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
  readonly dial: DialPod;
  /**
   * Returns the caller with the session's current permissions; undefined if the session or its
   * token has ended.
   */
  readonly callerOf: (session: DashboardSession) => Caller | undefined;
  /** Returns the pod. Throws unless the caller may open sessions in it. */
  readonly findPod: (namespace: string, pod: string, caller: Caller) => PodEntry;
  /** Records the start of a use of the pod. Returns a function that records its end. */
  readonly beginUse: (pod: PodEntry) => () => void;
}

/** The path that a browser opens first. */
const ENTER_PATH = "/.forage/enter";
const METHOD = "/forage.operator.v1.OperatorService/PortForward";
const COOKIE = /^(__Host-)?forage-/;
/** The most requests and WebSockets in progress, well below the limit of all agent sessions. */
const MAX_OPEN_REQUESTS = 256;
const PLACES_PER_PORT = 64;
const CONNECTIONS_PER_PORT = 32;
const MAX_PORT = 65_535;
/**
 * The most cookie values that are compared. More do not fit into the 16 KB of a request's headers.
 */
const MAX_SECRETS = 300;

const RULES: ForwardRules = {
  target: "the pod",
  hiddenHeaders: [],
  withoutOwnCookies: (header) => {
    const kept = header.split(";").filter((cookie) => !COOKIE.test(cookie.trim()));
    return kept.length === 0 ? undefined : kept.join(";").trim();
  },
  setsOwnCookie: (header) => COOKIE.test(header.trim()),
};

const STATUS_OF: Partial<Record<CoordinatorError["code"], number>> = { NOT_FOUND: 404, UNAVAILABLE: 503 };

interface Admitted {
  readonly opened: OpenedPort;
  readonly place: PodPlace;
  /** Ends the visit. */
  readonly done: () => void;
}

interface Refusal {
  readonly status: number;
  readonly message: string;
}

/**
 * Serves ports of pods to browsers that are logged in to the dashboard. Each opened port has its
 * own host name, so that pods share no origin and no cookie with the dashboard or with other pods.
 */
export class PodPorts implements OtherHosts {
  readonly #options: PodPortsOptions;
  readonly #opened: OpenedPorts;
  readonly #agent: PodAgent;
  readonly #shares = new Shares({
    what: "requests to ports of pods",
    total: MAX_OPEN_REQUESTS,
    ofUser: PLACES_PER_PORT,
    isFair: true,
  });

  constructor(options: PodPortsOptions) {
    this.#options = options;
    this.#opened = new OpenedPorts(options);
    this.#agent = new PodAgent(options.dial, CONNECTIONS_PER_PORT, options.clock);
  }

  /**
   * Opens a port for the session. Returns host name and path of the address that the browser opens
   * first. Throws CoordinatorError.
   */
  open(
    session: DashboardSession,
    caller: Caller,
    { namespace, pod, port }: { readonly namespace: string; readonly pod: string; readonly port: number },
  ): { readonly host: string; readonly path: string } {
    if (!Number.isInteger(port) || port < 1 || port > MAX_PORT)
      throw new CoordinatorError("INVALID", `port must be 1 to ${MAX_PORT}`);
    const { record } = this.#find(namespace, pod, caller);
    const target = { namespace, pod: record.name, podUid: record.uid, port };
    const { opened, ticket } = this.#opened.open(session, target);
    return { host: `${opened.id}.${this.#options.domain}`, path: `${ENTER_PATH}?ticket=${ticket}` };
  }

  owns(host: string | undefined): boolean {
    return podPortId(host, this.#options.domain) !== undefined;
  }

  async serve(
    request: IncomingMessage,
    response: ServerResponse,
    arrival: RequestOrigin,
    allowLong: () => void,
  ): Promise<void> {
    const [path, query] = (request.url ?? "").split("?");
    if (path === ENTER_PATH) return this.#enter(request, response, query, arrival);
    const found = this.#admit(request);
    if ("status" in found) return refuse(response, found.status, found.message);
    allowLong();
    const cut = (): void => void response.destroy();
    found.opened.signal.addEventListener("abort", cut, { once: true });
    try {
      const target = this.#agent.target(found.place, found.opened.port);
      await forwardRequest(request, response, target, arrival, RULES);
    } finally {
      found.opened.signal.removeEventListener("abort", cut);
      found.done();
    }
  }

  async upgrade(
    request: IncomingMessage,
    client: Duplex,
    head: Buffer,
    arrival: RequestOrigin,
  ): Promise<void> {
    const found = this.#admit(request);
    if ("status" in found) return refuseUpgrade(client, found.status, found.message);
    const cut = (): void => void client.destroy();
    found.opened.signal.addEventListener("abort", cut, { once: true });
    try {
      const dial = () => this.#options.dial(found.place, found.opened.port);
      await forwardUpgrade(request, client, head, arrival, RULES, dial);
    } finally {
      found.opened.signal.removeEventListener("abort", cut);
      found.done();
    }
  }

  close(): void {
    this.#opened.closeAll();
    this.#agent.destroy();
  }

  #admit(request: IncomingMessage): Admitted | Refusal {
    const opened = this.#opened.find(podPortId(request.headers.host, this.#options.domain) ?? "");
    if (opened === undefined)
      return { status: 404, message: "this port is not open: open it in the dashboard again" };
    const { id } = opened;
    if (!secretsOf(request).some((secret) => this.#opened.isSecret(id, secret)))
      return { status: 403, message: "this port was opened in another browser: open it in the dashboard" };
    if (isFromElsewhere(request))
      return { status: 403, message: "pages of other hosts can't send requests to this port" };
    try {
      const caller = this.#options.callerOf(opened.session);
      if (caller !== undefined)
        return this.#admitTo(opened, this.#find(opened.namespace, opened.podUid, caller));
    } catch (error) {
      if (!(error instanceof CoordinatorError)) throw error;
      return { status: STATUS_OF[error.code] ?? 403, message: error.message };
    }
    this.#opened.close(id);
    return {
      status: 403,
      message: "the session of the dashboard has ended: log in and open the port again",
    };
  }

  #admitTo(opened: OpenedPort, pod: PodEntry): Admitted | Refusal {
    const { node, uid } = pod.record;
    if (node === "") return { status: 503, message: `pod ${opened.pod} has no node yet` };
    const release = this.#shares.tryAcquire(opened.id);
    if (release === undefined)
      return { status: 503, message: "this port has too many open requests: try again later" };
    const endUse = this.#options.beginUse(pod);
    const done = (): void => {
      release();
      endUse();
    };
    return { opened, place: { node, uid }, done };
  }

  #find(namespace: string, pod: string, caller: Caller): PodEntry {
    assertNamespace(caller, METHOD, namespace);
    return this.#options.findPod(namespace, pod, caller);
  }

  /** Exchanges the ticket for a cookie. */
  #enter(
    request: IncomingMessage,
    response: ServerResponse,
    query: string | undefined,
    { proto }: RequestOrigin,
  ): void {
    const id = podPortId(request.headers.host, this.#options.domain) ?? "";
    const ticket = new URLSearchParams(query).get("ticket") ?? "";
    const secret = request.method === "GET" ? this.#opened.exchange(id, ticket) : undefined;
    if (secret === undefined) {
      refuse(response, 403, "this address was used, or is too old: open the port in the dashboard again");
      return;
    }
    const secure = proto === "https" ? "; Secure" : "";
    response.writeHead(303, {
      location: "/",
      // "Strict" would drop the cookie, because the browser comes from the dashboard, which is
      // another site.
      "set-cookie": `${cookieName(proto)}=${secret}; Path=/; HttpOnly; SameSite=Lax${secure}`,
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
    });
    response.end();
  }
}

/**
 * Returns the name of the cookie. Browsers accept a cookie with this prefix only from its own host
 * and only over TLS.
 */
function cookieName(proto: RequestOrigin["proto"]): string {
  return proto === "https" ? "__Host-forage-port" : "forage-port";
}

/**
 * Returns all values of the cookie. Without TLS, a pod under the same domain can set a cookie that
 * browsers also send to this host, before its own one.
 */
function secretsOf({ headers, socket }: IncomingMessage): string[] {
  const prefix = `${cookieName("encrypted" in socket ? "https" : "http")}=`;
  return (headers.cookie ?? "")
    .split(";")
    .map((cookie) => cookie.trim())
    .filter((cookie) => cookie.startsWith(prefix) && cookie.length === prefix.length + SECRET_LENGTH)
    .slice(0, MAX_SECRETS)
    .map((cookie) => cookie.slice(prefix.length));
}

/** Reports whether a page of another host sent the request. A link from anywhere is allowed. */
function isFromElsewhere({ headers, method }: IncomingMessage): boolean {
  const { origin } = headers;
  // Pages that hide their origin send "null" even to their own host.
  const isHidden = origin === "null" && headers["sec-fetch-site"] === "same-origin";
  if (origin !== undefined && !isHidden && URL.parse(origin)?.host !== headers.host) return true;
  const site = headers["sec-fetch-site"] ?? "same-origin";
  if (site === "same-origin" || site === "none") return false;
  return headers["sec-fetch-mode"] !== "navigate" || method !== "GET";
}
