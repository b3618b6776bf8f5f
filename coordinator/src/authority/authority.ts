import type { CertificateAuthority } from "@forage/identity/ca";

/** The cluster's certificate authority. There are two authorities while one is being replaced. */
export interface Authority
  extends Pick<CertificateAuthority, "cluster" | "issueServer" | "issueNode" | "issueCoordinator"> {
  /**
   * The roots that servers and clients of the cluster trust, in PEM. The root of servers'
   * certificates comes first.
   */
  readonly certPem: string;
  /** The pin of the root of servers' certificates. */
  readonly pin: string;
  /**
   * Returns the secrets for a purpose. The first one creates new signatures, and the others only
   * verify older ones.
   */
  deriveSecrets(purpose: string): readonly Uint8Array[];
}

/** One root of the cluster. */
export interface AuthorityRoot {
  readonly pin: string;
  readonly certPem: string;
  /** Whether the root's authority issues the certificates of servers. */
  readonly forServers: boolean;
  /** Whether the root's authority issues the certificates of nodes. */
  readonly forNodes: boolean;
}

/** Replaces the authority while the cluster runs. */
export interface AuthorityRoll {
  /** The roots, oldest first. */
  roots(): readonly AuthorityRoot[];
  /**
   * The pin of the authority from which nodes must renew their certificates; undefined if no
   * authority is being replaced.
   */
  readonly nextPin: string | undefined;
  /**
   * Creates a new authority, which is trusted in addition to the present one and issues the
   * certificates of nodes.
   */
  begin(): Promise<void>;
  /** Ends the trust in the older authority. From then on the new one issues all certificates. */
  finish(): Promise<void>;
  /**
   * Calls the function after each change of the roots. A change is complete when the promises of
   * all functions have resolved.
   */
  onChange(run: () => Promise<void> | void): void;
}

/** A certificate with its key. */
export interface AuthorityPem {
  readonly certPem: string;
  readonly keyPem: string;
}

/**
 * The authorities of coordinators that share a store, with their keys. All coordinators must have
 * the same state.
 */
export interface AuthorityState {
  readonly current: AuthorityPem;
  /** The authority that replaces the current one. It is set once servers trust it. */
  readonly next: AuthorityPem | undefined;
  /** Whether the next authority issues the certificates of nodes. */
  readonly nextIssues: boolean;
  /** The pins of former authorities, newest first. */
  readonly retired: readonly string[];
}
