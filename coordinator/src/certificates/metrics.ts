import { Counter, Gauge, type Registry } from "prom-client";
import type { CertificateController } from "./controller.ts";
import { stateViewOf } from "./state-view.ts";
import { certificateView } from "./view.ts";

/** Registers metrics from which an operator can detect failing renewals in time. */
export function certificateMetrics(
  certificates: CertificateController,
  nowMs: () => number,
  registers: Registry[],
): void {
  // Metrics can be read without credentials, so they contain no hostnames.
  new Gauge({
    name: "forage_certificates_first_expiry_timestamp_seconds",
    help: "Time at which the first of the certificates in use expires, in seconds since the epoch; 0 if there is none.",
    registers,
    collect() {
      const ends = certificates
        .states()
        .filter(({ hostname }) => certificates.requested.has(hostname))
        .flatMap(({ certificate }) => (certificate === undefined ? [] : [certificate.notAfterMs]));
      this.set(ends.length === 0 ? 0 : ends.reduce((a, b) => Math.min(a, b)) / 1000);
    },
  });
  new Gauge({
    name: "forage_certificates",
    help: "Hostnames for which routes need certificates, by state.",
    labelNames: ["state"],
    registers,
    collect() {
      this.reset();
      for (const state of ["ready", "issuing", "failed", "refused", "expired"]) this.set({ state }, 0);
      for (const hostname of certificates.requested)
        this.inc({ state: certificateView(stateViewOf(hostname, certificates, nowMs())).state });
    },
  });
  new Counter({
    name: "forage_certificate_attempts_total",
    help: "Completed attempts to obtain a certificate, by result.",
    labelNames: ["result"],
    registers,
    collect() {
      this.reset();
      this.inc({ result: "succeeded" }, certificates.counts.succeeded);
      this.inc({ result: "failed" }, certificates.counts.failed);
    },
  });
}
