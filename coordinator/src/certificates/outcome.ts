import type { BackOff } from "@forage/common/back-off";
import { renewAtMs } from "@forage/identity/renewal";
import { waitMs } from "./back-off.ts";
import type { CertificateState, Pause } from "./certificate-state.ts";
import type { IssueError } from "./issue-error.ts";
import type { NewCertificate } from "./issuer.ts";

/** The longest wait that an authority can request. A longer one may be its mistake. */
const MAX_ASKED_MS = 7 * 24 * 3_600_000;
/** The pause for the issuer after too many requests for one hostname. */
const RATE_PAUSE_MS = 60_000;
const MAX_RATE_PAUSE_MS = 600_000;

/** Keeps a certificate that seems due on arrival, because a clock is wrong, from being requested again and again. */
const MAX_GAP_MS = 24 * 3_600_000;

export interface OutcomeContext {
  readonly nowMs: number;
  /** A random number in [0, 1). */
  readonly random: number;
  readonly hostnameBackOff: BackOff;
  readonly issuerBackOff: BackOff;
}

/** Returns the state after an attempt that succeeded. Pure. */
export function succeeded(
  holding: CertificateState,
  issuer: string,
  certificate: NewCertificate,
  { nowMs, random }: Pick<OutcomeContext, "nowMs" | "random">,
): CertificateState {
  const { hostname } = holding;
  const gapMs = Math.min(Math.max((certificate.notAfterMs - certificate.notBeforeMs) / 3, 1_000), MAX_GAP_MS);
  const renewal = Math.max(renewAtMs(certificate, random), nowMs + gapMs);
  return { hostname, issuer, certificate, renewAtMs: renewal, failures: 0, error: "", retryAtAsked: false };
}

/** Returns the state after an attempt that failed. A failure of the issuer does not count against the hostname. Pure. */
export function failed(
  holding: CertificateState,
  error: IssueError,
  context: OutcomeContext,
): CertificateState {
  const { nowMs, random, hostnameBackOff } = context;
  if (error.blame === "issuer") return holding;
  const failures = holding.failures + 1;
  const askedMs = askedOf(error);
  return {
    ...holding,
    failures,
    error: error.message,
    failedAtMs: nowMs,
    retryAtMs: nowMs + waitMs(hostnameBackOff, failures, random, askedMs),
    retryAtAsked: askedMs > 0,
  };
}

/** Returns how long the issuer is paused after the attempt. Undefined: it has answered, and needs no pause. Pure. */
export function pauseAfter(
  before: Pause | undefined,
  error: IssueError,
  context: OutcomeContext,
): Pause | undefined {
  const { nowMs, random, issuerBackOff } = context;
  if (error.blame === "hostname") return undefined;
  const askedMs = askedOf(error);
  if (error.blame === "rate") {
    const untilMs = nowMs + Math.min(askedMs || RATE_PAUSE_MS, MAX_RATE_PAUSE_MS);
    return { failures: before?.failures ?? 0, error: error.message, untilMs, asked: true };
  }
  // Attempts that were on their way when the first one failed tell nothing new.
  if (before !== undefined && before.untilMs > nowMs && askedMs === 0) return before;
  const failures = (before?.failures ?? 0) + 1;
  return {
    failures,
    error: error.message,
    untilMs: nowMs + waitMs(issuerBackOff, failures, random, askedMs),
    asked: askedMs > 0,
  };
}

function askedOf({ retryAfterMs = 0 }: IssueError): number {
  return Math.min(Math.max(retryAfterMs, 0), MAX_ASKED_MS);
}
