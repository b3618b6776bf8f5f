import type { GatewayChallenge } from "@forage/proto/forage/agent/v1/agent";

/** An issued certificate. */
export interface IssuedCertificate {
  readonly type: "issued";
  /** The certificate followed by its issuers, in PEM. */
  readonly chainPem: string;
  readonly keyPem: string;
  /** The expiry of the certificate in milliseconds since the epoch. */
  readonly expiresMs?: number;
  /**
   * The reason why the certificate will not be renewed in time, as a sentence for the route's
   * conditions.
   */
  readonly warning?: string;
}

/** A certificate that is not issued yet, or that never will be. */
export interface PendingCertificate {
  readonly type: "pending";
  /**
   * One word in CamelCase for the route's conditions, such as "IssuerNotConfigured" or "Issuing".
   */
  readonly reason: string;
  /** A sentence for the route's conditions, with what to do if possible. */
  readonly message: string;
}

export type SourcedCertificate = IssuedCertificate | PendingCertificate;

/**
 * Provides certificates for hostnames with TLS whose routes name no secret. Answers from memory;
 * certificates are requested in the background, and changed answers are reported to subscribers.
 */
export interface CertificateSource {
  /**
   * Sets the hostnames that need certificates, including wildcards such as "*.example.com".
   * Certificates for other hostnames are no longer issued or renewed. Called again whenever the set
   * changes.
   */
  setHostnames(hostnames: ReadonlySet<string>): void;
  certificateFor(hostname: string): SourcedCertificate;
  /** Returns the challenges that gateways must answer at present. */
  challenges(): readonly GatewayChallenge[];
  /**
   * Sets the tokens of challenges that all ready gateways answer. The authority must not validate a
   * challenge before its token is in the set. The set is empty if there is no gateway.
   */
  served(tokens: ReadonlySet<string>): void;
  /**
   * Calls `changed` when certificates or challenges change. Returns a function that ends the
   * subscription.
   */
  subscribe(changed: () => void): () => void;
}

/** Returns a source for clusters without an issuer, in which routes must name their secrets. */
export function noCertificateSource(): CertificateSource {
  return {
    setHostnames: () => {},
    certificateFor: () => ({
      type: "pending",
      reason: "IssuerNotConfigured",
      message:
        "the cluster has no issuer of certificates: name a secret in tls.certificate_ref, or set certificates in the coordinator's configuration",
    }),
    challenges: () => [],
    served: () => {},
    subscribe: () => () => {},
  };
}
