import type { Certificate, OperatorServiceService } from "@forage/proto/forage/operator/v1/operator";
import { CoordinatorError } from "../errors.ts";
import type { Handlers } from "../rpc/serve.ts";
import type { Clock } from "../time/clock.ts";
import type { CertificateController } from "./controller.ts";
import { stateViewOf } from "./state-view.ts";
import { certificateView } from "./view.ts";

export interface CertificateHandlerOptions {
  /** The controller; undefined if the cluster has no issuer. */
  readonly certificates?: CertificateController | undefined;
  /** The root certificate of the development CA in PEM. */
  readonly certificateRoot?: string | undefined;
  readonly clock: Clock;
}

export type CertificateHandlers = Pick<
  Handlers<typeof OperatorServiceService>,
  "listCertificates" | "renewCertificate" | "getCertificateAuthority"
>;

/** Returns the handlers of the RPCs that list and renew certificates. */
export function certificateHandlers(options: CertificateHandlerOptions): CertificateHandlers {
  const { certificates, certificateRoot, clock } = options;
  return {
    listCertificates: async ({ hostname }) => {
      if (certificates === undefined) return { certificates: [], issuer: "" };
      const all = hostnamesOf(certificates).filter((name) => hostname === "" || name === hostname);
      const views = all.map((name) => viewOf(name, certificates, clock));
      return { certificates: views, issuer: certificates.issuer.name };
    },
    renewCertificate: async ({ hostname }) => {
      if (certificates === undefined) throw noIssuer();
      assertRenewable(hostname, certificates, clock);
      certificates.renew(hostname);
      return { certificate: viewOf(hostname, certificates, clock) };
    },
    getCertificateAuthority: async () => {
      if (certificateRoot !== undefined) return { certificatePem: certificateRoot };
      if (certificates === undefined) throw noIssuer();
      const { name } = certificates.issuer;
      throw new CoordinatorError(
        "FAILED_PRECONDITION",
        `the root of ${name} isn't kept here: only the development CA's is (certificates.issuer: self-signed)`,
      );
    },
  };
}

/** Returns access to the certificates by hostname, for the live tables. */
export function certificateViews({ certificates, clock }: CertificateHandlerOptions) {
  return {
    hostnames: (): string[] => (certificates === undefined ? [] : hostnamesOf(certificates)),
    viewOf: (hostname: string): Certificate | undefined => {
      const isKnown = certificates?.requested.has(hostname) || certificates?.state(hostname) !== undefined;
      return certificates && isKnown ? viewOf(hostname, certificates, clock) : undefined;
    },
  };
}

function hostnamesOf(certificates: CertificateController): string[] {
  const held = certificates.states().map(({ hostname }) => hostname);
  return [...new Set([...certificates.requested, ...held])].sort();
}

function viewOf(hostname: string, certificates: CertificateController, { nowMs }: Clock): Certificate {
  return certificateView(stateViewOf(hostname, certificates, nowMs()));
}

function assertRenewable(hostname: string, certificates: CertificateController, { nowMs }: Clock): void {
  if (!certificates.requested.has(hostname))
    throw new CoordinatorError(
      "NOT_FOUND",
      `no route needs a certificate for "${hostname}": \`forage certificate ls\` lists those that do`,
    );
  const refusal = certificates.issuer.refusalOf(hostname);
  if (refusal !== undefined) throw new CoordinatorError("FAILED_PRECONDITION", refusal);
  const { retryAtMs = 0, retryAtRequested = false } = certificates.state(hostname) ?? {};
  if (retryAtRequested && retryAtMs > nowMs())
    throw new CoordinatorError(
      "FAILED_PRECONDITION",
      `${certificates.issuer.name} requests no further attempts for ${hostname} until ${new Date(retryAtMs).toISOString()}`,
    );
}

function noIssuer(): CoordinatorError {
  return new CoordinatorError(
    "FAILED_PRECONDITION",
    "the cluster has no issuer of certificates: set certificates.issuer in the coordinator's configuration",
  );
}
