import type { BackOff } from "@forage/common/back-off";
import { renewAtMs } from "@forage/identity/renewal";
import { waitMs } from "./back-off.ts";
import type { CertificateState, Pause } from "./certificate-state.ts";
import type { IssueError } from "./issue-error.ts";
import type { NewCertificate } from "./issuer.ts";

/** The longest delay that an authority can request. A longer one may be a mistake. */
const MAX_REQUESTED_MS = 7 * 24 * 3_600_000;
/** The pause of the issuer after too many requests for one hostname. */
const RATE_PAUSE_MS = 60_000;
const MAX_RATE_PAUSE_MS = 600_000;

/**
 * The longest time after which an already due certificate is requested again. A certificate may be
 * due on arrival because a clock is wrong.
 */
const MAX_GAP_MS = 24 * 3_600_000;

export interface OutcomeContext {
  readonly nowMs: number;
  /** A random number in [0, 1). */
  readonly random: number;
  readonly hostnameBackOff: BackOff;
  readonly issuerBackOff: BackOff;
}

/** Returns the state after a successful attempt. */
export function succeeded(
  state: CertificateState,
  issuer: string,
  certificate: NewCertificate,
  { nowMs, random }: Pick<OutcomeContext, "nowMs" | "random">,
): CertificateState {
  const { hostname } = state;
  const gapMs = Math.min(Math.max((certificate.notAfterMs - certificate.notBeforeMs) / 3, 1_000), MAX_GAP_MS);
  const renewal = Math.max(renewAtMs(certificate, random), nowMs + gapMs);
  return {
    hostname,
    issuer,
    certificate,
    renewAtMs: renewal,
    failures: 0,
    error: "",
    retryAtRequested: false,
  };
}

/**
 * Returns the state after a failed attempt. A failure of the issuer does not count against the
 * hostname.
 */
export function failed(
  state: CertificateState,
  error: IssueError,
  context: OutcomeContext,
): CertificateState {
  const { nowMs, random, hostnameBackOff } = context;
  if (error.blame === "issuer") return state;
  const failures = state.failures + 1;
  const requestedMs = requestedDelayOf(error);
  return {
    ...state,
    failures,
    error: error.message,
    failedAtMs: nowMs,
    retryAtMs: nowMs + waitMs(hostnameBackOff, failures, random, requestedMs),
    retryAtRequested: requestedMs > 0,
  };
}

/**
 * Returns the pause of the issuer after an attempt; undefined if the issuer answered and needs no
 * pause.
 */
export function pauseAfter(
  before: Pause | undefined,
  error: IssueError,
  context: OutcomeContext,
): Pause | undefined {
  const { nowMs, random, issuerBackOff } = context;
  if (error.blame === "hostname") return undefined;
  const requestedMs = requestedDelayOf(error);
  if (error.blame === "rate") {
    const untilMs = nowMs + Math.min(requestedMs || RATE_PAUSE_MS, MAX_RATE_PAUSE_MS);
    return { failures: before?.failures ?? 0, error: error.message, untilMs, isRequested: true };
  }
  // Attempts that started before the first failure add no information.
  if (before !== undefined && before.untilMs > nowMs && requestedMs === 0) return before;
  const failures = (before?.failures ?? 0) + 1;
  return {
    failures,
    error: error.message,
    untilMs: nowMs + waitMs(issuerBackOff, failures, random, requestedMs),
    isRequested: requestedMs > 0,
  };
}

function requestedDelayOf({ retryAfterMs = 0 }: IssueError): number {
  return Math.min(Math.max(retryAfterMs, 0), MAX_REQUESTED_MS);
}
