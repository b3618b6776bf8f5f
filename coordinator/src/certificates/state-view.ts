import type { CertificateController } from "./controller.ts";
import type { CertificateView } from "./view.ts";

/** Returns the present view of the hostname. */
export function stateViewOf(
  hostname: string,
  certificates: CertificateController,
  nowMs: number,
): CertificateView {
  return {
    hostname,
    state: certificates.state(hostname),
    requested: certificates.requested.has(hostname),
    running: certificates.isRunning(hostname),
    refusal: certificates.issuer.refusalOf(hostname),
    pause: certificates.pause,
    issuerName: certificates.issuer.name,
    nowMs,
  };
}
