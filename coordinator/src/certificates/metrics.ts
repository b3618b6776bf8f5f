import { Counter, Gauge, type Registry } from "prom-client";
import type { CertificateController } from "./controller.ts";
import { stateViewOf } from "./state-view.ts";
import { certificateView } from "./view.ts";

/** Figures of certificates, by which an operator learns in time of one that isn't renewed. */
export function certificateMetrics(
  certificates: CertificateController,
  nowMs: () => number,
  registers: Registry[],
): void {
  // Readers of metrics have no credentials, so no metric contains a hostname.
  new Gauge({
    name: "forage_certificates_first_expiry_timestamp_seconds",
    help: "When the first of the certificates in use ends, in seconds since the epoch; 0 when there is none.",
    registers,
    collect() {
      const ends = certificates
        .holdings()
        .filter(({ hostname }) => certificates.wanted.has(hostname))
        .flatMap(({ certificate }) => (certificate === undefined ? [] : [certificate.notAfterMs]));
      this.set(ends.length === 0 ? 0 : ends.reduce((a, b) => Math.min(a, b)) / 1000);
    },
  });
  new Gauge({
    name: "forage_certificates",
    help: "Hostnames that routes want certificates for, by state.",
    labelNames: ["state"],
    registers,
    collect() {
      this.reset();
      for (const state of ["ready", "issuing", "failed", "refused", "expired"]) this.set({ state }, 0);
      for (const hostname of certificates.wanted)
        this.inc({ state: certificateView(stateViewOf(hostname, certificates, nowMs())).state });
    },
  });
  new Counter({
    name: "forage_certificate_attempts_total",
    help: "Attempts to get a certificate that ended, by result.",
    labelNames: ["result"],
    registers,
    collect() {
      this.reset();
      this.inc({ result: "succeeded" }, certificates.counts.succeeded);
      this.inc({ result: "failed" }, certificates.counts.failed);
    },
  });
}
