import type { CertificateAuthority } from "@forage/identity/ca";

/** The cluster's certificate authority, as the parts of the coordinator use it. It may stand for two while one is replaced. */
export interface Authority
  extends Pick<CertificateAuthority, "cluster" | "issueServer" | "issueNode" | "issueCoordinator"> {
  /** The roots that servers and clients of the cluster trust, PEM. The root of servers' certificates comes first. */
  readonly certPem: string;
  /** The pin of the root of servers' certificates. */
  readonly pin: string;
  /** Returns the secrets for one purpose. The first one is for new signatures, the others verify older ones. */
  deriveSecrets(purpose: string): readonly Uint8Array[];
}

/** One root of the cluster. */
export interface AuthorityRoot {
  readonly pin: string;
  readonly certPem: string;
  /** Whether it issues the certificates of servers. */
  readonly forServers: boolean;
  /** Whether it issues the certificates of nodes. */
  readonly forNodes: boolean;
}

/** Replaces the authority while the cluster runs. */
export interface AuthorityRoll {
  /** The roots, oldest first. */
  roots(): readonly AuthorityRoot[];
  /** The pin of the authority whose certificates nodes must renew to; undefined: no authority is being replaced. */
  readonly nextPin: string | undefined;
  /** Makes a new authority, which is trusted beside the present one and issues the certificates of nodes. */
  begin(): Promise<void>;
  /** Ends the trust in the older authority. The new one issues all certificates. */
  finish(): Promise<void>;
  /** Calls the function after each change of the roots. A change is complete when all of them have resolved. */
  onChange(run: () => Promise<void> | void): void;
}

/** A certificate with its key. */
export interface AuthorityPem {
  readonly certPem: string;
  readonly keyPem: string;
}

/** The authorities of coordinators that share a store, with their keys. All coordinators have to agree on them. */
export interface AuthorityState {
  readonly current: AuthorityPem;
  /** The authority that replaces the current one, from the time on at which servers trust it. */
  readonly next: AuthorityPem | undefined;
  /** Whether the next authority issues the certificates of nodes. */
  readonly nextIssues: boolean;
  /** The pins of the authorities before the current one, newest first. */
  readonly retired: readonly string[];
}
