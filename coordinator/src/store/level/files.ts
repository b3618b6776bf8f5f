import { join } from "node:path";

/** The files in a store's directory. */
export interface StoreFiles {
  readonly dir: string;
  /** LevelDB's directory. */
  readonly database: string;
  /** The database's files as an opening found them, for as long as it takes, see `evidence.ts`. */
  readonly evidence: string;
  /** A database that a restore is making; it becomes `database` as the restore's last step. */
  readonly restoring: string;
  /** A complete database that a salvage made; it becomes `database` once the damaged one has another name. */
  readonly salvaged: string;
  /** The witness of what was acknowledged last. */
  readonly head: string;
  readonly ballast: string;
}

export function storeFiles(dir: string): StoreFiles {
  const database = join(dir, "db");
  return {
    dir,
    database,
    evidence: `${database}.before-open`,
    restoring: `${database}.restoring`,
    salvaged: `${database}.salvaged`,
    head: join(dir, "HEAD"),
    ballast: join(dir, "ballast"),
  };
}
