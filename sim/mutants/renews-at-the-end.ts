import type { Validity } from "../../identity/src/renewal.ts";

export * from "../../identity/src/renewal.ts";

/** Renews certificates only when they have expired. */
export function renewAtMs({ notAfterMs }: Validity): number {
  return notAfterMs;
}
