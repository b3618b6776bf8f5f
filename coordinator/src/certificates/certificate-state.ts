import type { NewCertificate } from "./issuer.ts";

/** The state of a hostname: its certificate, the attempts to get one, or both. */
export interface CertificateState {
  readonly hostname: string;
  /** The issuer of the certificate, or of the attempts. */
  readonly issuer: string;
  readonly certificate?: NewCertificate | undefined;
  /** The time at which the renewal begins. */
  readonly renewAtMs?: number | undefined;
  /** Attempts that failed since the certificate came. */
  readonly failures: number;
  /** The error of the last failed attempt. Empty if none failed. */
  readonly error: string;
  readonly failedAtMs?: number | undefined;
  /** The time before which no attempt is made. */
  readonly retryAtMs?: number | undefined;
  /** Set if the authority requested the wait. */
  readonly retryAtAsked: boolean;
  /** The time at which an operator requested a renewal. */
  readonly renewalAskedAtMs?: number | undefined;
}

/** The reason why no request is sent to the issuer at present. */
export interface Pause {
  readonly failures: number;
  readonly error: string;
  readonly untilMs: number;
  /** Set if the issuer requested the wait. */
  readonly asked: boolean;
}

export function emptyCertificateState(hostname: string, issuer: string): CertificateState {
  return { hostname, issuer, failures: 0, error: "", retryAtAsked: false };
}
