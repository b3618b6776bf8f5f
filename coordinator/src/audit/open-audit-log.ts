import { join } from "node:path";
import type { Clock } from "@forage/common/clock";
import type { Log } from "@forage/common/log";
import { type AuditLog, NO_AUDIT_LOG } from "./audit-log.ts";
import { FileAuditLog } from "./file-audit-log.ts";

/**
 * Opens the audit log of a data directory. If that fails, the coordinator starts without an audit
 * log, because pods depend on the coordinator.
 */
export async function openAuditLog(dataDir: string, clock: Clock, log: Log): Promise<AuditLog> {
  const dir = join(dataDir, "audit");
  try {
    return await FileAuditLog.open({ dir, clock, log });
  } catch (err) {
    log.error({ event: "audit-log-not-opened", dir, err });
    return NO_AUDIT_LOG;
  }
}
