import type { Certificate } from "@forage/proto/forage/operator/v1/operator";
import { toEpochMs } from "../../model/timestamp.ts";
import type { CertificateRow, Tone } from "./rows.ts";

/** The certificates of the cluster, if it has an issuer. */
export interface LiveCertificates {
  hostnames(): readonly string[];
  /** Returns the certificate of a hostname; undefined if the hostname needs none and has none. */
  viewOf(hostname: string): Certificate | undefined;
}

const TONES: Readonly<Record<string, Tone>> = { ready: "good", issuing: "busy" };

export function certificateRow({ hostname, state, message, notAfter }: Certificate): CertificateRow {
  const notAfterMs = toEpochMs(notAfter) ?? 0;
  return { hostname, state, tone: TONES[state] ?? "bad", message, notAfterMs };
}
