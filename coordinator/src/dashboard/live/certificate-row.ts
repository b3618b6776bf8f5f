import type { Certificate } from "@forage/proto/forage/operator/v1/operator";
import { toEpochMs } from "../../model/timestamp.ts";
import type { CertificateRow, Tone } from "./rows.ts";

/** Certificates of the cluster, where it has an issuer. */
export interface LiveCertificates {
  hostnames(): readonly string[];
  /** Returns undefined for a hostname that needs no certificate and has none. */
  viewOf(hostname: string): Certificate | undefined;
}

const TONES: Readonly<Record<string, Tone>> = { ready: "good", issuing: "busy" };

export function certificateRow({ hostname, state, message, notAfter }: Certificate): CertificateRow {
  const notAfterMs = toEpochMs(notAfter) ?? 0;
  return { hostname, state, tone: TONES[state] ?? "bad", message, notAfterMs };
}
