import type { AuditFields } from "@forage/common/audit-chain";

export interface AuditPage {
  /** Lines as they are stored, oldest first. */
  readonly lines: readonly string[];
  /** The sequence of the newest entry of the log; 0: there is none. */
  readonly newest: number;
}

/** The record of calls. Entries form a chain of hashes, so that a changed or missing one shows. */
export interface AuditLog {
  /** Takes an entry, which is written soon. Never throws. */
  append(entry: AuditFields): void;
  /** Reads entries with higher sequences, oldest first. */
  read(after: number, limit: number): Promise<AuditPage>;
  /** Writes what waits. */
  close(): Promise<void>;
}

/** Keeps no entries. */
export const NO_AUDIT_LOG: AuditLog = {
  append: () => {},
  read: async () => ({ lines: [], newest: 0 }),
  close: async () => {},
};
