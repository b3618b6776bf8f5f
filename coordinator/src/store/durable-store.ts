import type { BackupInfo } from "./format/backup.ts";
import type { Store } from "./store.ts";

/** A store that outlasts its process. Made once, with an id that its backups carry. */
export interface DurableStore extends Store {
  readonly id: string;
  /**
   * Grows by one with each restore or salvage. Together with the revision it identifies a history: (epoch, revision) never
   * decreases.
   */
  readonly epoch: number;
  /** A random id of this history: new with each restore or lossy salvage, kept by a copy of the files. */
  readonly lineage: string;
  /** The time since which this process alone may write, by its wall clock. Undefined: no other one could, or another one may. */
  readonly leadsSinceMs?: number | undefined;
  /** Milliseconds since the last answer of etcd; 0 while it answers. Undefined: the store is not in etcd. */
  readonly unansweredMs?: number;
  /**
   * Whether no other process can have written since. Undefined: no other one could. False: it may have, so that what this one
   * doesn't know may exist.
   */
  readonly leadIsConfirmed?: boolean | undefined;
  /** Returns what each configured member of etcd answers. Undefined: the store is not in etcd. */
  readonly members?: () => Promise<readonly { readonly type: "up" | "down" }[]>;
  /** Writes the state as of one revision to a new file, while serving; the file is complete or absent. */
  backup(file: string): Promise<BackupInfo>;
  /** Reads everything that is stored again, while serving; CORRUPT unless it is what was written. Takes as much memory again. */
  verify(): Promise<void>;
}
