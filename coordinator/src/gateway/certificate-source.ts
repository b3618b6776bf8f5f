import type { GatewayChallenge } from "@forage/proto/forage/agent/v1/agent";

/** A certificate that is issued and served. */
export interface IssuedCertificate {
  readonly kind: "issued";
  /** The certificate followed by its issuers, PEM. */
  readonly chainPem: string;
  readonly keyPem: string;
  /** The end of its validity, since the epoch. */
  readonly expiresMs?: number;
  /** The reason why the certificate will not be replaced in time, in a sentence for the route's conditions. */
  readonly warning?: string;
}

/** A certificate that is not issued yet, or never will be. */
export interface PendingCertificate {
  readonly kind: "pending";
  /** One word in CamelCase, such as "IssuerNotConfigured" or "Issuing", for the route's conditions. */
  readonly reason: string;
  /** A sentence that says what to do, if there is something. */
  readonly message: string;
}

export type SourcedCertificate = IssuedCertificate | PendingCertificate;

/**
 * Provides certificates for hostnames with TLS whose routes name no secret. It answers from memory. Its work runs in the
 * background, and it reports changed answers.
 */
export interface CertificateSource {
  /**
   * Sets the hostnames that need certificates, with wildcards such as "*.example.com". Replaces the previous set: others are no
   * longer issued or renewed. Called again whenever the set changes.
   */
  want(hostnames: ReadonlySet<string>): void;
  certificateFor(hostname: string): SourcedCertificate;
  /** Returns the responses that gateways have to give to authorities at present. */
  challenges(): readonly GatewayChallenge[];
  /**
   * Sets the tokens of challenges that all ready gateways answer. An authority must not be asked to validate before its token is
   * in the set. The set is empty while there is no gateway.
   */
  served(tokens: ReadonlySet<string>): void;
  /** Called when certificates or challenges have changed. Returns how to stop. */
  subscribe(changed: () => void): () => void;
}

/** Returns the source for clusters without an issuer, where routes have to name their secrets. */
export function noCertificateSource(): CertificateSource {
  return {
    want: () => {},
    certificateFor: () => ({
      kind: "pending",
      reason: "IssuerNotConfigured",
      message:
        "the cluster has no issuer of certificates: name a secret in tls.certificate_ref, or set certificates in the coordinator's configuration",
    }),
    challenges: () => [],
    served: () => {},
    subscribe: () => () => {},
  };
}
