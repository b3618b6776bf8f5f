import type { NewCertificate } from "./issuer.ts";

/** What there is of a hostname: its certificate, the attempts at one, or both. */
export interface Holding {
  readonly hostname: string;
  /** Whose the certificate is, or who was asked for one. */
  readonly issuer: string;
  readonly certificate?: NewCertificate | undefined;
  /** When the certificate is to be replaced. */
  readonly renewAtMs?: number | undefined;
  /** Attempts that failed since the certificate came. */
  readonly failures: number;
  /** What the last of them said; empty: none failed. */
  readonly error: string;
  readonly failedAtMs?: number | undefined;
  /** No attempt before. */
  readonly retryAtMs?: number | undefined;
  /** The authority has asked for that wait. */
  readonly retryAtAsked: boolean;
  /** Someone wants another one before its time. */
  readonly renewalAskedAtMs?: number | undefined;
}

/** Why nothing is asked of an issuer at present. */
export interface Pause {
  readonly failures: number;
  readonly error: string;
  readonly untilMs: number;
  /** The issuer has asked for that wait. */
  readonly asked: boolean;
}

export function emptyHolding(hostname: string, issuer: string): Holding {
  return { hostname, issuer, failures: 0, error: "", retryAtAsked: false };
}
