import type { Log } from "@forage/common/log";
import type { RecentLines } from "@forage/common/recent-lines";
import type { AuditLog } from "./audit/audit-log.ts";
import type { Authority, AuthorityRoll } from "./authority/authority.ts";
import type { Backups } from "./backups/open-backups.ts";
import type { Config, HostPort } from "./config.ts";
import type { Follower } from "./follower/follower.ts";
import type { IdentityIssuer } from "./objects/identity-issuer.ts";
import type { Vault } from "./objects/vault.ts";
import type { ReadKeyFiles } from "./peers/enroll-coordinator.ts";
import type { DurableStore, Store } from "./store/index.ts";
import type { Clock } from "./time/clock.ts";
import type { Access } from "./workspaces/access/open-access.ts";
import type { ContentStore } from "./workspaces/content/content-store.ts";

export interface CoordinatorOptions {
  readonly config: Config;
  readonly store: Store & Pick<DurableStore, "leadsSinceMs" | "leadIsConfirmed" | "members" | "unansweredMs">;
  /** The epoch, which grows with each restore of the store. */
  readonly epoch: number;
  /** The random id of the store's history, see LevelStore. */
  readonly lineage: string;
  readonly clusterId: string;
  /** Reads the keys for further coordinators. Default: there can be none. */
  readonly readKeyFiles?: ReadKeyFiles | undefined;
  readonly authority: Authority;
  /** The replacement of the authority. Default: not possible while the coordinator runs. */
  readonly authorityRoll?: AuthorityRoll | undefined;
  /** Encrypts secrets. */
  readonly vault: Vault;
  /** Signs the identity tokens of pods. */
  readonly issuer: IdentityIssuer;
  /** The audit log. Default: none. */
  readonly audit?: AuditLog;
  /** The backups of the store, until the coordinator is closed. Default: none can be made. */
  readonly backups?: Backups | undefined;
  /** The store of workspace archives. Default: a directory below `dataDir`. */
  readonly content?: ContentStore | undefined;
  /** The addresses of this host, for the certificate of the gRPC port. Default: none. */
  readonly hostAddresses?: readonly string[];
  /**
   * The file with the pages of the dashboard. Default: the dashboard answers that it is not built.
   */
  readonly dashboardPath?: string;
  readonly clock: Clock;
  readonly log: Log;
  /** The newest lines of the log, for support bundles. Default: none are kept. */
  readonly recentLog?: RecentLines | undefined;
  /** Called when the coordinator can't continue. The process should end and be restarted. */
  readonly onFatal: (error: unknown) => void;
  /**
   * The follower that becomes the leader, whose view and ports are kept. Default: everything is
   * opened.
   */
  readonly follower?: Follower;
}

export interface Coordinator {
  readonly grpc: HostPort;
  readonly http: HostPort;
  readonly destination: HostPort | undefined;
  /** The ports through which users reach their workspaces. */
  readonly access: Pick<Access, "ingress" | "ssh"> | undefined;
  /** Returns the state of the fleet in one line. */
  status(): string;
  /**
   * Ends streams with OK, and waits for steps in progress. The store stays open, because its owner
   * closes it.
   */
  close(): Promise<void>;
}
