import type { SourcedCertificate } from "../gateway/certificate-source.ts";
import type { CertificateState, Pause } from "./certificate-state.ts";

/** The state of a hostname at one time. */
export interface Known {
  readonly holding: CertificateState | undefined;
  readonly refusal: string | undefined;
  readonly running: boolean;
  readonly pause: Pause | undefined;
  readonly issuerName: string;
  readonly nowMs: number;
}

/** Returns the certificate, or why there is none and what to do about it. Pure. */
export function certificateFor({
  holding,
  refusal,
  running,
  pause,
  issuerName,
  nowMs,
}: Known): SourcedCertificate {
  const trouble = failureCauseOf(holding, refusal, pause, nowMs);
  const certificate = holding?.certificate;
  if (certificate !== undefined) {
    const warning = warningOf(certificate.notAfterMs, trouble, nowMs);
    const { chainPem, keyPem } = certificate;
    const expiresMs = certificate.notAfterMs;
    return { kind: "issued", chainPem, keyPem, expiresMs, ...(warning !== undefined && { warning }) };
  }
  if (refusal !== undefined) return { kind: "pending", reason: "Refused", message: refusal };
  if (trouble !== undefined && !running) return { kind: "pending", ...trouble };
  const message = `a certificate is being asked of ${issuerName}`;
  // While another attempt runs, why the one before failed is still the most that is known.
  return {
    kind: "pending",
    reason: "Issuing",
    message: trouble ? `${message}; ${trouble.message}` : message,
  };
}

export interface CertificateFailure {
  readonly reason: "IssueFailed" | "IssuerUnavailable" | "Refused";
  readonly message: string;
}

/** Explains why the next certificate doesn't come. Pure. */
export function failureCauseOf(
  holding: CertificateState | undefined,
  refusal: string | undefined,
  pause: Pause | undefined,
  nowMs: number,
): CertificateFailure | undefined {
  if (refusal !== undefined) return { reason: "Refused", message: refusal };
  if (holding !== undefined && holding.failures > 0) {
    const { error, retryAtMs = nowMs } = holding;
    return { reason: "IssueFailed", message: `${error} (${again(retryAtMs, nowMs)})` };
  }
  if (pause !== undefined && pause.untilMs > nowMs && isNeeded(holding, nowMs))
    return { reason: "IssuerUnavailable", message: `${pause.error} (${again(pause.untilMs, nowMs)})` };
  return undefined;
}

/** Reports whether the hostname needs a new certificate. A pause of the issuer concerns only such hostnames. */
function isNeeded(holding: CertificateState | undefined, nowMs: number): boolean {
  if (holding?.certificate === undefined || holding.renewalAskedAtMs !== undefined) return true;
  return (holding.renewAtMs ?? 0) <= nowMs;
}

function warningOf(
  notAfterMs: number,
  trouble: CertificateFailure | undefined,
  nowMs: number,
): string | undefined {
  if (trouble === undefined)
    return nowMs >= notAfterMs ? `it ended at ${timeText(notAfterMs)} and is being renewed` : undefined;
  const end = `${nowMs >= notAfterMs ? "it ended" : "it ends"} at ${timeText(notAfterMs)}`;
  return `${end} and can't be renewed: ${trouble.message}`;
}

function again(atMs: number, nowMs: number): string {
  return atMs > nowMs ? `tried again at ${timeText(atMs)}` : "being tried again";
}

function timeText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
