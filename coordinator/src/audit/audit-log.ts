import type { AuditFields } from "@forage/common/audit-chain";

export interface AuditPage {
  /** The lines as stored, oldest first. */
  readonly lines: readonly string[];
  /** The sequence of the newest entry of the log; 0 if there is none. */
  readonly newest: number;
}

/**
 * The audit log. Its entries form a chain of hashes, so that a changed or missing entry is
 * detected.
 */
export interface AuditLog {
  /** Adds an entry, which is written soon. Never throws. */
  append(entry: AuditFields): void;
  /** Reads entries with higher sequences, oldest first. */
  read(after: number, limit: number): Promise<AuditPage>;
  /** Writes pending entries. */
  close(): Promise<void>;
}

/** An audit log that keeps no entries. */
export const NO_AUDIT_LOG: AuditLog = {
  append: () => {},
  read: async () => ({ lines: [], newest: 0 }),
  close: async () => {},
};
