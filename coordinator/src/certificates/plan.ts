import type { CertificateState } from "./certificate-state.ts";

export type AttemptReason = "new" | "renewal" | "requested" | "other-issuer";

export interface Attempt {
  readonly hostname: string;
  readonly why: AttemptReason;
}

export interface PlanInput {
  readonly requested: ReadonlySet<string>;
  readonly states: ReadonlyMap<string, CertificateState>;
  /** The hostnames with attempts in progress. */
  readonly running: ReadonlySet<string>;
  readonly issuer: { readonly id: string; readonly atOnce: number };
  /** Reports whether the issuer never issues certificates for the hostname. */
  readonly isRefused: (hostname: string) => boolean;
  readonly pausedUntilMs?: number | undefined;
  readonly nowMs: number;
}

export interface Plan {
  readonly start: readonly Attempt[];
  /** The hostnames whose attempts are cancelled, because they are no longer requested. */
  readonly stop: readonly string[];
  /** The hostnames whose states are deleted. */
  readonly forget: readonly string[];
  /** The time at which an attempt may become due without another change; undefined means never. */
  readonly nextMs: number | undefined;
}

/**
 * The time for which a failure is kept after its hostname was removed, so that a hostname that
 * returns keeps its back-off.
 */
const REMEMBER_FAILURE_MS = 7 * 24 * 3_600_000;

/**
 * Returns the attempts to start now. Hostnames without a certificate come first, then those whose
 * certificate expires first.
 */
export function planCertificates(input: PlanInput): Plan {
  const { requested, states, running, issuer, nowMs } = input;
  const pausedUntilMs = input.pausedUntilMs ?? 0;
  const waiting = [...requested]
    .filter((hostname) => !running.has(hostname) && !input.isRefused(hostname))
    .map((hostname) => dueOf(hostname, states.get(hostname), issuer.id, pausedUntilMs));
  const due = waiting.filter(({ atMs }) => atMs <= nowMs).sort(byUrgency);
  const start = due.slice(0, Math.max(issuer.atOnce - running.size, 0));
  const unused = [...states.values()].filter(
    ({ hostname }) => !requested.has(hostname) && !running.has(hostname),
  );
  const forget = unused.filter((state) => forgetAtMs(state) <= nowMs);
  const times = [
    // Attempts that are already due wait for the end of another attempt, which triggers a new plan.
    ...waiting.filter(({ atMs }) => atMs > nowMs).map(({ atMs }) => atMs),
    ...unused.map(forgetAtMs).filter((atMs) => atMs > nowMs),
  ];
  return {
    start: start.map(({ hostname, why }) => ({ hostname, why })),
    stop: [...running].filter((hostname) => !requested.has(hostname)),
    forget: forget.map(({ hostname }) => hostname),
    nextMs: times.length === 0 ? undefined : times.reduce((a, b) => Math.min(a, b)),
  };
}

interface Due extends Attempt {
  readonly atMs: number;
  /** The expiry of the present certificate in milliseconds since the epoch; 0 if there is none. */
  readonly endsMs: number;
}

function dueOf(
  hostname: string,
  state: CertificateState | undefined,
  issuer: string,
  pausedUntilMs: number,
): Due {
  const retryAtMs = Math.max(state?.retryAtMs ?? 0, pausedUntilMs);
  const due = (why: AttemptReason, atMs: number): Due => {
    const endsMs = state?.certificate?.notAfterMs ?? 0;
    return { hostname, why, atMs: Math.max(atMs, retryAtMs), endsMs };
  };
  if (state?.certificate === undefined) return due("new", 0);
  if (state.issuer !== issuer) return due("other-issuer", 0);
  if (state.renewalRequestedAtMs !== undefined) return due("requested", 0);
  return due("renewal", state.renewAtMs ?? 0);
}

function byUrgency(a: Due, b: Due): number {
  return a.endsMs - b.endsMs || a.atMs - b.atMs || (a.hostname < b.hostname ? -1 : 1);
}

function forgetAtMs({ certificate, failedAtMs }: CertificateState): number {
  const failureMs = failedAtMs === undefined ? 0 : failedAtMs + REMEMBER_FAILURE_MS;
  return Math.max(certificate?.notAfterMs ?? 0, failureMs);
}
