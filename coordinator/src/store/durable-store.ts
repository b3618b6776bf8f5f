import type { BackupInfo } from "./format/backup.ts";
import type { Store } from "./store.ts";

/** A store on durable storage, with an id that its backups contain. */
export interface DurableStore extends Store {
  readonly id: string;
  /**
   * The epoch, which grows by one with each restore or salvage. The pair (epoch, revision) never decreases over the life of
   * a cluster.
   */
  readonly epoch: number;
  /** A random id of this history. Each restore or lossy salvage creates a new one; a copy of the files keeps it. */
  readonly lineage: string;
  /**
   * The wall-clock time since which this process leads. Undefined: no other process can ever lead, or another one leads.
   */
  readonly leadsSinceMs?: number | undefined;
  /** The milliseconds since the last response of etcd. 0 while it responds. Undefined: the store is not in etcd. */
  readonly unansweredMs?: number;
  /**
   * Whether no other process can have written since this one last read. False: another process may have, so that this one's
   * state may be outdated. Undefined: no other process can ever write.
   */
  readonly leadIsConfirmed?: boolean | undefined;
  /** Returns whether each configured member of etcd responds. Undefined: the store is not in etcd. */
  readonly members?: () => Promise<readonly { readonly type: "up" | "down" }[]>;
  /** Writes the state of one revision to a new file while the store is in use. The file is complete or absent. */
  backup(file: string): Promise<BackupInfo>;
  /**
   * Reads and checks everything that is stored while the store is in use. Throws CORRUPT if anything differs from what was
   * written. Needs as much memory as the store itself.
   */
  verify(): Promise<void>;
}
