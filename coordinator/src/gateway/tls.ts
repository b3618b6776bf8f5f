import type { GatewayBackend } from "@forage/proto/forage/agent/v1/agent";
import { compareRoutes, type Route, routeKey, routeTitle, whyFirst } from "./route.ts";

/** The state of a certificate for one hostname of one route. */
export type CertificateState =
  | {
      readonly type: "ready";
      /**
       * The id, such as `secret/shop/web` or `issued/app.example.com`. It stays the same when the
       * certificate is renewed.
       */
      readonly id: string;
      readonly chainPem: string;
      readonly keyPem: string;
      readonly expiresMs: number | undefined;
      /** A problem of a certificate that is served nevertheless. */
      readonly warning: CertificateProblem | undefined;
    }
  | ({ readonly type: "missing" } & CertificateProblem);

export interface CertificateProblem {
  /** The reason as one word in CamelCase. */
  readonly reason: string;
  readonly message: string;
}

export type ReadyCertificate = Extract<CertificateState, { type: "ready" }>;

/** The handling of encrypted connections to a hostname. */
export type HostTls =
  | { readonly mode: "none" }
  | { readonly mode: "Passthrough"; readonly route: Route; readonly backends: readonly GatewayBackend[] }
  /** The gateway terminates TLS. The certificate is undefined until one is issued. */
  | { readonly mode: "Terminate"; readonly certificate: ReadyCertificate | undefined };

export interface TlsDecision {
  readonly tls: HostTls;
  /** The routes with parts that are not applied, with the reasons. */
  readonly conflicts: readonly { readonly route: Route; readonly message: string }[];
  /** The certificates to which routes refer, by key of the route. */
  readonly certificates: ReadonlyMap<string, CertificateState>;
}

export interface TlsInput {
  readonly hostname: string;
  /** All routes with the hostname. */
  readonly routes: readonly Route[];
  readonly certificateOf: (route: Route, hostname: string) => CertificateState;
  readonly passthroughOf: (route: Route) => readonly GatewayBackend[];
}

/**
 * Decides how a hostname uses TLS. The first route with TLS determines the mode, and the first
 * ready certificate is used.
 */
export function decideTls({ hostname, routes, certificateOf, passthroughOf }: TlsInput): TlsDecision {
  const asking = routes.filter(({ tls }) => tls !== undefined).sort(compareRoutes);
  const certificates = new Map(
    asking
      .filter(({ tls }) => tls?.mode === "Terminate")
      .map((route) => [routeKey(route), certificateOf(route, hostname)] as const),
  );
  const [first] = asking;
  if (first?.tls === undefined) return { tls: { mode: "none" }, conflicts: [], certificates };
  if (first.tls.mode === "Passthrough") {
    const tls = { mode: "Passthrough", route: first, backends: passthroughOf(first) } as const;
    const what = `encrypted connections to ${hostname} are passed through without TLS termination by ${routeTitle(first)}`;
    const conflicts = asking.slice(1).map((route) => conflict(route, first, what));
    return { tls, conflicts, certificates };
  }
  const served = asking.find((route) => certificates.get(routeKey(route))?.type === "ready");
  const state = served && certificates.get(routeKey(served));
  const certificate = state?.type === "ready" ? state : undefined;
  const conflicts = asking.flatMap((route) => {
    if (route.tls?.mode === "Passthrough") {
      const what = `encrypted connections to ${hostname} are terminated for ${routeTitle(first)}`;
      return [conflict(route, first, what)];
    }
    if (served === undefined || certificateIdOf(route, hostname) === certificateIdOf(served, hostname))
      return [];
    // A missing certificate of the route itself is reported elsewhere.
    if (certificates.get(routeKey(route))?.type !== "ready") return [];
    return [conflict(route, served, `${hostname} has the certificate of ${routeTitle(served)}`)];
  });
  return { tls: { mode: "Terminate", certificate }, conflicts, certificates };
}

/**
 * Returns the origin of a route's certificate: `secret/shop/web`, or `issued/` and the hostname.
 */
export function certificateIdOf({ namespace, tls }: Route, hostname: string): string {
  const secret = tls?.mode === "Terminate" ? tls.secret : "";
  return secret === "" ? `issued/${hostname}` : `secret/${namespace}/${secret}`;
}

function conflict(route: Route, winner: Route, what: string): TlsDecision["conflicts"][number] {
  return { route, message: `${what}, which ${whyFirst(winner, route)}` };
}
