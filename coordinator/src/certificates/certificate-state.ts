import type { NewCertificate } from "./issuer.ts";

/** The stored state of a hostname: its certificate, the attempts to obtain one, or both. */
export interface CertificateState {
  readonly hostname: string;
  /** The issuer of the certificate, or of the attempts if there is none. */
  readonly issuer: string;
  readonly certificate?: NewCertificate | undefined;
  /** The time at which the renewal begins. */
  readonly renewAtMs?: number | undefined;
  /** The number of failed attempts since the certificate was issued. */
  readonly failures: number;
  /** The error of the last failed attempt, or empty. */
  readonly error: string;
  readonly failedAtMs?: number | undefined;
  /** The time before which no attempt is made. */
  readonly retryAtMs?: number | undefined;
  /** Whether the authority requested the delay until `retryAtMs`. */
  readonly retryAtRequested: boolean;
  /** The time at which an operator requested a renewal. */
  readonly renewalRequestedAtMs?: number | undefined;
}

/** The reason why no requests are currently sent to the issuer. */
export interface Pause {
  readonly failures: number;
  readonly error: string;
  readonly untilMs: number;
  /** Whether the issuer requested the pause. */
  readonly isRequested: boolean;
}

export function emptyCertificateState(hostname: string, issuer: string): CertificateState {
  return { hostname, issuer, failures: 0, error: "", retryAtRequested: false };
}
