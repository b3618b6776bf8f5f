import { join } from "node:path";

/** What lies in a store's directory. */
export interface StoreFiles {
  readonly dir: string;
  /** LevelDB's directory. */
  readonly database: string;
  /** The witness of what was acknowledged last. */
  readonly head: string;
  readonly ballast: string;
}

export function storeFiles(dir: string): StoreFiles {
  return { dir, database: join(dir, "db"), head: join(dir, "HEAD"), ballast: join(dir, "ballast") };
}
