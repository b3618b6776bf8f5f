import type { Certificate } from "@forage/proto/forage/operator/v1/operator";
import { toTimestamp } from "../model/timestamp.ts";
import { failureCauseOf } from "./certificate-for.ts";
import type { CertificateState, Pause } from "./certificate-state.ts";

/** The inputs of the public view of a hostname. They contain no key. */
export interface CertificateView {
  readonly hostname: string;
  readonly state: CertificateState | undefined;
  readonly requested: boolean;
  readonly running: boolean;
  readonly refusal: string | undefined;
  readonly pause: Pause | undefined;
  readonly issuerName: string;
  readonly nowMs: number;
}

/** Returns the public view of a hostname. */
export function certificateView(shown: CertificateView): Certificate {
  const { hostname, state, issuerName } = shown;
  const certificate = state?.certificate;
  const time = (ms: number | undefined) => (ms === undefined ? undefined : toTimestamp(ms));
  const { state: stateName, message } = stateOf(shown);
  return {
    hostname,
    state: stateName,
    message,
    issuer: issuerName,
    chainPem: certificate?.chainPem ?? "",
    notBefore: time(certificate?.notBeforeMs),
    notAfter: time(certificate?.notAfterMs),
    renewAt: time(certificate && state?.renewAtMs),
    failures: state?.failures ?? 0,
    failedAt: time(state?.failedAtMs),
    retryAt: time(state?.retryAtMs),
  };
}

function stateOf({ state, requested, running, refusal, pause, nowMs }: CertificateView): {
  readonly state: string;
  readonly message: string;
} {
  const failure = requested ? failureCauseOf(state, refusal, pause, nowMs) : undefined;
  const endsMs = state?.certificate?.notAfterMs;
  const message = failure?.message ?? "";
  if (endsMs !== undefined && endsMs <= nowMs) return { state: "expired", message };
  if (endsMs !== undefined && !requested) return { state: "unused", message: "no route needs it any more" };
  // A pending renewal is not a state of its own: the certificate remains ready.
  if (endsMs !== undefined) return { state: "ready", message };
  if (!requested) return { state: "unused", message: state?.error ?? "" };
  if (failure?.reason === "Refused") return { state: "refused", message };
  if (running || failure === undefined) return { state: "issuing", message };
  return { state: "failed", message };
}
