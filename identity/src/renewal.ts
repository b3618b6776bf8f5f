/** Renewing at two thirds of a certificate's life leaves a third (8 h of 24) to get through an outage. */
const RENEW_AT = 2 / 3;
/** Certificates of a fleet that joined at one time must not all be renewed at one time. */
const JITTER = 0.1;

export type Validity = { readonly notBeforeMs: number; readonly notAfterMs: number };

/**
 * When to renew: at 2/3 of the life, up to a tenth of that earlier or later. `random` is one draw from [0, 1), made once per
 * certificate, so that asking again gives the same moment.
 */
export function renewAtMs({ notBeforeMs, notAfterMs }: Validity, random: number): number {
  const factor = RENEW_AT * (1 + JITTER * (2 * random - 1));
  return Math.round(notBeforeMs + (notAfterMs - notBeforeMs) * factor);
}

/** What to do about a certificate now. `expired` means that only a new join token helps. */
export function renewalState(validity: Validity, random: number, nowMs: number): "fresh" | "due" | "expired" {
  if (nowMs >= validity.notAfterMs) return "expired";
  return nowMs >= renewAtMs(validity, random) ? "due" : "fresh";
}
