import { join } from "node:path";

/** The files in a store's directory. */
export interface StoreFiles {
  readonly dir: string;
  /** LevelDB's directory. */
  readonly database: string;
  /** The original files of the database during an opening, see `evidence.ts`. */
  readonly evidence: string;
  /** The database that a restore creates. It becomes `database` in the restore's last step. */
  readonly restoring: string;
  /** The complete database that a salvage has created. It becomes `database` once the damaged one was renamed. */
  readonly salvaged: string;
  /** The file with the last acknowledged revision. */
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
