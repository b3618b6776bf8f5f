/** A newly issued certificate with its key. */
export interface NewCertificate {
  /** The certificate followed by its issuers, in PEM. */
  readonly chainPem: string;
  /** The private key as PKCS #8 in PEM. */
  readonly keyPem: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** Issues certificates. An issuer does not retry; the plan of the controller does. */
export interface Issuer {
  /** The id, which is stored with each certificate. Certificates of another issuer are replaced. */
  readonly id: string;
  /** The name to display, such as "https://acme.example/directory". */
  readonly name: string;
  /** The most concurrent attempts. */
  readonly atOnce: number;
  /**
   * Returns the reason why the issuer can never issue a certificate for the hostname, and what to
   * do. Undefined if it can try.
   */
  refusalOf(hostname: string): string | undefined;
  /** Makes one attempt to issue a certificate. Throws IssueError; any other error is a defect. */
  issue(hostname: string, signal: AbortSignal): Promise<NewCertificate>;
}
