import { join } from "node:path";
import type { Clock } from "@forage/common/clock";
import type { Logger } from "pino";
import { type AuditLog, NO_AUDIT_LOG } from "./audit-log.ts";
import { FileAuditLog } from "./file-audit-log.ts";

/** Opens the audit log of a data directory. After a failure the coordinator starts without it, because pods need the coordinator more. */
export async function openAuditLog(dataDir: string, clock: Clock, log: Logger): Promise<AuditLog> {
  const dir = join(dataDir, "audit");
  try {
    return await FileAuditLog.open({ dir, clock, log });
  } catch (err) {
    log.error(
      { event: "audit-log-not-opened", dir, err },
      "the audit log can't be opened; calls are not recorded until the next start",
    );
    return NO_AUDIT_LOG;
  }
}
