import type { Validity } from "../../identity/src/renewal.ts";

export * from "../../identity/src/renewal.ts";

/** Renews certificates when they have ended. */
export function renewAtMs({ notAfterMs }: Validity): number {
  return notAfterMs;
}
