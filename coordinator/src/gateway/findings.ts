import type { RefProblem } from "./backends.ts";
import { matchText, normalMatch } from "./match.ts";
import { type Entry, MAX_HOST_BYTES, type OwnRules, type Shadowed } from "./ordered-rules.ts";
import { type Route, routeKey, routeTitle, whyFirst } from "./route.ts";
import type { CertificateProblem, HostTls, TlsDecision } from "./tls.ts";

/** The findings about a route for one of its hostnames. */
export interface HostnameFindings {
  readonly hostname: string;
  /** The TLS mode of the hostname, regardless of which route set it. */
  readonly tls: HostTls["mode"];
  /** The id of the served certificate; empty if there is none. */
  readonly certificate: string;
  readonly expiresMs: number | undefined;
  /** The number of matches in the route's rules, and how many of them are reachable. */
  readonly matches: number;
  readonly effectiveMatches: number;
}

/** All findings about a route, except those that gateway nodes report. */
export interface RouteFindings {
  readonly route: Route;
  readonly hostnames: readonly HostnameFindings[];
  readonly refs: readonly RefProblem[];
  readonly conflicts: readonly RouteConflict[];
  readonly certificates: readonly CertificateProblem[];
}

export interface RouteConflict {
  readonly reason: "MatchShadowed" | "TLSConflict" | "TooManyRules";
  readonly message: string;
}

interface Draft {
  readonly route: Route;
  readonly hostnames: HostnameFindings[];
  readonly refs: RefProblem[];
  readonly conflicts: RouteConflict[];
  readonly certificates: CertificateProblem[];
}

/** Collects the findings of all routes, hostname by hostname. */
export class Findings {
  readonly #drafts: ReadonlyMap<string, Draft>;

  constructor(routes: readonly Route[]) {
    this.#drafts = new Map(
      routes.map((route) => [
        routeKey(route),
        { route, hostnames: [], refs: [], conflicts: [], certificates: [] },
      ]),
    );
  }

  all(): ReadonlyMap<string, RouteFindings> {
    return this.#drafts;
  }

  refs(route: Route, problems: readonly RefProblem[]): void {
    this.#of(route)?.refs.push(...problems);
  }

  host(
    hostname: string,
    found: {
      readonly routes: readonly Route[];
      readonly rules: OwnRules;
      readonly tls: TlsDecision;
      /** The served rules, including those of covering hostnames. */
      readonly effective: readonly Entry[];
      readonly serving: HostTls;
    },
  ): void {
    const { routes, rules, tls, serving } = found;
    const effective = countByRoute(found.effective);
    const reachable = countByRoute(rules.entries);
    const hidden = countByRoute(rules.shadowed.map(({ loser }) => loser));
    const certificate = serving.mode === "Terminate" ? serving.certificate : undefined;
    for (const route of routes) {
      const key = routeKey(route);
      const handsOn = route.tls?.mode === "Passthrough";
      const matches = (reachable.get(key) ?? 0) + (hidden.get(key) ?? 0);
      const isHandedOn = serving.mode === "Passthrough" && routeKey(serving.route) === key;
      this.#of(route)?.hostnames.push({
        hostname,
        tls: serving.mode,
        certificate: certificate?.id ?? "",
        expiresMs: certificate?.expiresMs,
        matches: handsOn ? 1 : matches,
        effectiveMatches: handsOn ? Number(isHandedOn) : (effective.get(key) ?? 0),
      });
      if ((effective.get(key) ?? 0) < (reachable.get(key) ?? 0)) this.#tooMany(route, hostname);
      this.#certificate(route, tls, certificate?.id);
    }
    for (const { route, message } of tls.conflicts)
      this.#of(route)?.conflicts.push({ reason: "TLSConflict", message });
    for (const pair of rules.shadowed)
      this.#of(pair.loser.route)?.conflicts.push({
        reason: "MatchShadowed",
        message: shadowText(hostname, pair),
      });
  }

  #of(route: Route): Draft | undefined {
    return this.#drafts.get(routeKey(route));
  }

  #tooMany(route: Route, hostname: string): void {
    const message = `the rules of ${hostname} are more than ${MAX_HOST_BYTES} bytes; the last ones in order are left out`;
    this.#of(route)?.conflicts.push({ reason: "TooManyRules", message });
  }

  #certificate(route: Route, { certificates }: TlsDecision, served: string | undefined): void {
    const state = certificates.get(routeKey(route));
    if (state === undefined) return;
    const problem = state.type === "missing" ? state : state.warning;
    if (problem === undefined) return;
    const { reason } = problem;
    const meanwhile =
      state.type === "missing" && served !== undefined ? `; meanwhile ${served} is served` : "";
    this.#of(route)?.certificates.push({ reason, message: `${problem.message}${meanwhile}` });
  }
}

function countByRoute(entries: readonly Entry[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { route } of entries) counts.set(routeKey(route), (counts.get(routeKey(route)) ?? 0) + 1);
  return counts;
}

function shadowText(hostname: string, { loser, winner }: Shadowed): string {
  const what = `rules[${loser.ruleIndex}] (${matchText(normalMatch(loser.rule.match))}) of ${hostname}`;
  if (routeKey(loser.route) === routeKey(winner.route))
    return `${what} is never reached: rules[${winner.ruleIndex}] matches the same`;
  return `${what} is served by ${routeTitle(winner.route)}, which ${whyFirst(winner.route, loser.route)}`;
}
