import type { Certificate } from "@forage/proto/forage/operator/v1/operator";
import { toTimestamp } from "../model/timestamp.ts";
import { failureCauseOf } from "./certificate-for.ts";
import type { CertificateState, Pause } from "./certificate-state.ts";

/** The public view of a hostname. It contains no key. */
export interface CertificateView {
  readonly hostname: string;
  readonly holding: CertificateState | undefined;
  readonly wanted: boolean;
  readonly running: boolean;
  readonly refusal: string | undefined;
  readonly pause: Pause | undefined;
  readonly issuerName: string;
  readonly nowMs: number;
}

/** Pure. */
export function certificateView(shown: CertificateView): Certificate {
  const { hostname, holding, issuerName } = shown;
  const certificate = holding?.certificate;
  const time = (ms: number | undefined) => (ms === undefined ? undefined : toTimestamp(ms));
  const { state, message } = stateOf(shown);
  return {
    hostname,
    state,
    message,
    issuer: issuerName,
    chainPem: certificate?.chainPem ?? "",
    notBefore: time(certificate?.notBeforeMs),
    notAfter: time(certificate?.notAfterMs),
    renewAt: time(certificate && holding?.renewAtMs),
    failures: holding?.failures ?? 0,
    failedAt: time(holding?.failedAtMs),
    retryAt: time(holding?.retryAtMs),
  };
}

function stateOf({ holding, wanted, running, refusal, pause, nowMs }: CertificateView): {
  readonly state: string;
  readonly message: string;
} {
  const trouble = wanted ? failureCauseOf(holding, refusal, pause, nowMs) : undefined;
  const endsMs = holding?.certificate?.notAfterMs;
  const message = trouble?.message ?? "";
  if (endsMs !== undefined && endsMs <= nowMs) return { state: "expired", message };
  if (endsMs !== undefined && !wanted) return { state: "unused", message: "no route needs it any more" };
  // One that comes is served in place of one that ends soon: that the next is made is no state of its own.
  if (endsMs !== undefined) return { state: "ready", message };
  if (!wanted) return { state: "unused", message: holding?.error ?? "" };
  if (trouble?.reason === "Refused") return { state: "refused", message };
  if (running || trouble === undefined) return { state: "issuing", message };
  return { state: "failed", message };
}
