import type { GatewayChallenge } from "@forage/proto/forage/agent/v1/agent";

/** There is a certificate, and it is served. */
export interface IssuedCertificate {
  readonly kind: "issued";
  /** The certificate followed by its issuers, PEM. */
  readonly chainPem: string;
  readonly keyPem: string;
  /** When it ends, since the epoch. */
  readonly expiresMs?: number;
  /** Why it will not be replaced in time as things stand, in a sentence for the route's conditions. */
  readonly warning?: string;
}

/** There is none yet, or there will be none. */
export interface PendingCertificate {
  readonly kind: "pending";
  /** One word in CamelCase, such as "IssuerNotConfigured" or "Issuing", for the route's conditions. */
  readonly reason: string;
  /** A sentence that says what to do, if there is something. */
  readonly message: string;
}

export type SourcedCertificate = IssuedCertificate | PendingCertificate;

/**
 * Where certificates come from for hostnames with TLS whose routes name no secret. It answers from memory and at once; its
 * work goes on behind, and it tells when an answer has changed.
 */
export interface CertificateSource {
  /**
   * For which hostnames certificates are wanted from now on, "*.example.com" among them. It replaces what was said before:
   * for those not in it nothing is issued or renewed. Said again whenever it changes.
   */
  want(hostnames: ReadonlySet<string>): void;
  certificateFor(hostname: string): SourcedCertificate;
  /** What gateways are to answer authorities that ask; only those of the moment. */
  challenges(): readonly GatewayChallenge[];
  /**
   * Tokens of the challenges that all gateways which take requests answer by now. Before its token is in it, nobody should be
   * asked to look. Empty while there is no gateway.
   */
  served(tokens: ReadonlySet<string>): void;
  /** Called when certificates or challenges have changed. Returns how to stop. */
  subscribe(changed: () => void): () => void;
}

/** For clusters without an issuer: routes have to name their secrets. */
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
