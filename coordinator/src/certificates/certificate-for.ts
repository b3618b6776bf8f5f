import type { SourcedCertificate } from "../gateway/certificate-source.ts";
import type { CertificateState, Pause } from "./certificate-state.ts";

/** The inputs that decide whether a hostname has a certificate. */
export interface CertificateInputs {
  readonly state: CertificateState | undefined;
  readonly refusal: string | undefined;
  readonly running: boolean;
  readonly pause: Pause | undefined;
  readonly issuerName: string;
  readonly nowMs: number;
}

/** Returns the certificate, or the reason why there is none and what to do about it. */
export function certificateFor({
  state,
  refusal,
  running,
  pause,
  issuerName,
  nowMs,
}: CertificateInputs): SourcedCertificate {
  const failure = failureCauseOf(state, refusal, pause, nowMs);
  const certificate = state?.certificate;
  if (certificate !== undefined) {
    const warning = warningOf(certificate.notAfterMs, failure, nowMs);
    const { chainPem, keyPem } = certificate;
    const expiresMs = certificate.notAfterMs;
    return { type: "issued", chainPem, keyPem, expiresMs, ...(warning !== undefined && { warning }) };
  }
  if (refusal !== undefined) return { type: "pending", reason: "Refused", message: refusal };
  if (failure !== undefined && !running) return { type: "pending", ...failure };
  const message = `a certificate is being requested from ${issuerName}`;
  // While another attempt runs, the error of the last failed attempt is still the best explanation.
  return {
    type: "pending",
    reason: "Issuing",
    message: failure ? `${message}; ${failure.message}` : message,
  };
}

export interface CertificateFailure {
  readonly reason: "IssueFailed" | "IssuerUnavailable" | "Refused";
  readonly message: string;
}

/** Returns the reason why no new certificate is issued; undefined if there is no problem. */
export function failureCauseOf(
  state: CertificateState | undefined,
  refusal: string | undefined,
  pause: Pause | undefined,
  nowMs: number,
): CertificateFailure | undefined {
  if (refusal !== undefined) return { reason: "Refused", message: refusal };
  if (state !== undefined && state.failures > 0) {
    const { error, retryAtMs = nowMs } = state;
    return { reason: "IssueFailed", message: `${error} (${again(retryAtMs, nowMs)})` };
  }
  if (pause !== undefined && pause.untilMs > nowMs && isNeeded(state, nowMs))
    return { reason: "IssuerUnavailable", message: `${pause.error} (${again(pause.untilMs, nowMs)})` };
  return undefined;
}

/**
 * Reports whether the hostname needs a new certificate. A pause of the issuer affects only such
 * hostnames.
 */
function isNeeded(state: CertificateState | undefined, nowMs: number): boolean {
  if (state?.certificate === undefined || state.renewalRequestedAtMs !== undefined) return true;
  return (state.renewAtMs ?? 0) <= nowMs;
}

function warningOf(
  notAfterMs: number,
  failure: CertificateFailure | undefined,
  nowMs: number,
): string | undefined {
  if (failure === undefined)
    return nowMs >= notAfterMs ? `it expired at ${timeText(notAfterMs)} and is being renewed` : undefined;
  const end = `${nowMs >= notAfterMs ? "it expired" : "it expires"} at ${timeText(notAfterMs)}`;
  return `${end} and can't be renewed: ${failure.message}`;
}

function again(atMs: number, nowMs: number): string {
  return atMs > nowMs ? `tried again at ${timeText(atMs)}` : "being tried again";
}

function timeText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
