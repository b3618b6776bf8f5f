import type { CertificateState } from "./certificate-state.ts";

export type Why = "new" | "renewal" | "asked" | "other-issuer";

export interface Attempt {
  readonly hostname: string;
  readonly why: Why;
}

export interface PlanInput {
  readonly wanted: ReadonlySet<string>;
  readonly holdings: ReadonlyMap<string, CertificateState>;
  /** Attempts that have not ended. */
  readonly running: ReadonlySet<string>;
  readonly issuer: { readonly id: string; readonly atOnce: number };
  /** Hostnames that the issuer never gives certificates for. */
  readonly isRefused: (hostname: string) => boolean;
  readonly pausedUntilMs?: number | undefined;
  readonly nowMs: number;
}

export interface Plan {
  readonly start: readonly Attempt[];
  /** The attempts for hostnames that are no longer requested. */
  readonly stop: readonly string[];
  /** The states that have no use any more. */
  readonly forget: readonly string[];
  /** The time at which an attempt may become due without another change; undefined: never. */
  readonly nextMs: number | undefined;
}

/** A failure is remembered for this long after its hostname has gone, so that a hostname that returns keeps its back-off. */
const REMEMBER_FAILURE_MS = 7 * 24 * 3_600_000;

/**
 * Returns the attempts that begin now. Hostnames without a certificate come first, then those whose certificate ends first. Pure.
 */
export function planCertificates(input: PlanInput): Plan {
  const { wanted, holdings, running, issuer, nowMs } = input;
  const pausedUntilMs = input.pausedUntilMs ?? 0;
  const waiting = [...wanted]
    .filter((hostname) => !running.has(hostname) && !input.isRefused(hostname))
    .map((hostname) => dueOf(hostname, holdings.get(hostname), issuer.id, pausedUntilMs));
  const due = waiting.filter(({ atMs }) => atMs <= nowMs).sort(byUrgency);
  const start = due.slice(0, Math.max(issuer.atOnce - running.size, 0));
  const unwanted = [...holdings.values()].filter(
    ({ hostname }) => !wanted.has(hostname) && !running.has(hostname),
  );
  const forget = unwanted.filter((holding) => forgetAtMs(holding) <= nowMs);
  const times = [
    // Those that are due already wait for a running one to end, which is a change of its own.
    ...waiting.filter(({ atMs }) => atMs > nowMs).map(({ atMs }) => atMs),
    ...unwanted.map(forgetAtMs).filter((atMs) => atMs > nowMs),
  ];
  return {
    start: start.map(({ hostname, why }) => ({ hostname, why })),
    stop: [...running].filter((hostname) => !wanted.has(hostname)),
    forget: forget.map(({ hostname }) => hostname),
    nextMs: times.length === 0 ? undefined : times.reduce((a, b) => Math.min(a, b)),
  };
}

interface Due extends Attempt {
  readonly atMs: number;
  /** The end of the present certificate. 0 if there is none. */
  readonly endsMs: number;
}

function dueOf(
  hostname: string,
  holding: CertificateState | undefined,
  issuer: string,
  pausedUntilMs: number,
): Due {
  const retryAtMs = Math.max(holding?.retryAtMs ?? 0, pausedUntilMs);
  const due = (why: Why, atMs: number): Due => {
    const endsMs = holding?.certificate?.notAfterMs ?? 0;
    return { hostname, why, atMs: Math.max(atMs, retryAtMs), endsMs };
  };
  if (holding?.certificate === undefined) return due("new", 0);
  if (holding.issuer !== issuer) return due("other-issuer", 0);
  if (holding.renewalAskedAtMs !== undefined) return due("asked", 0);
  return due("renewal", holding.renewAtMs ?? 0);
}

function byUrgency(a: Due, b: Due): number {
  return a.endsMs - b.endsMs || a.atMs - b.atMs || (a.hostname < b.hostname ? -1 : 1);
}

function forgetAtMs({ certificate, failedAtMs }: CertificateState): number {
  const failureMs = failedAtMs === undefined ? 0 : failedAtMs + REMEMBER_FAILURE_MS;
  return Math.max(certificate?.notAfterMs ?? 0, failureMs);
}
