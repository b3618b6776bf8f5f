/** An issuer's result for one hostname. */
export interface NewCertificate {
  /** The certificate followed by its issuers, PEM. */
  readonly chainPem: string;
  /** PKCS #8 PEM. */
  readonly keyPem: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** Issues certificates. Only the plan repeats a request; the issuer never does. */
export interface Issuer {
  /** Certificates of another issuer are replaced by this one's. */
  readonly id: string;
  /** The name for people, such as "https://acme.example/directory". */
  readonly name: string;
  /** The number of hostnames that the controller certifies at one time. */
  readonly atOnce: number;
  /** Returns why the issuer can never certify the hostname, and what to do. Undefined if an attempt makes sense. */
  refusalOf(hostname: string): string | undefined;
  /** One attempt. Throws IssueError; anything else is a defect. */
  issue(hostname: string, signal: AbortSignal): Promise<NewCertificate>;
}
