/** The part of its life after which a certificate is renewed, unless the caller says otherwise: what ACME clients do. */
const RENEW_AT = 2 / 3;
/**
 * The share of its lifetime after which a node's certificate is renewed: of 30 days, 20 are left to survive an outage of the
 * coordinator.
 */
export const NODE_RENEW_AT = 1 / 3;
/** Certificates of a fleet that joined at one time must not all be renewed at one time. */
const JITTER = 0.1;

export interface Validity {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/**
 * Returns the time of renewal: at the part `at` of the life, up to a tenth of it earlier or later. `random` is one draw from [0,
 * 1), made once per certificate, so repeated calls return the same time.
 */
export function renewAtMs({ notBeforeMs, notAfterMs }: Validity, random: number, at = RENEW_AT): number {
  const factor = at * (1 + JITTER * (2 * random - 1));
  return Math.round(notBeforeMs + (notAfterMs - notBeforeMs) * factor);
}

/** The action that a certificate needs now. `expired`: it can only be renewed within the coordinator's grace period. */
export function renewalState(
  validity: Validity,
  random: number,
  nowMs: number,
  at = RENEW_AT,
): "fresh" | "due" | "expired" {
  if (nowMs >= validity.notAfterMs) return "expired";
  return nowMs >= renewAtMs(validity, random, at) ? "due" : "fresh";
}
