import type { ListAuditRequest, ListAuditResponse } from "@forage/proto/forage/operator/v1/operator";
import type { AuditLog } from "../../audit/audit-log.ts";
import { CoordinatorError } from "../../errors.ts";

export interface AuditOptions {
  readonly auditLog: Pick<AuditLog, "read">;
}

const DEFAULT_LIMIT = 500;
/** The limit of entries in a page, about 400 KB. */
const MAX_LIMIT = 1_000;

/** Returns a page of the audit log. Throws INVALID. */
export async function listAudit(
  { after, limit, newest }: ListAuditRequest,
  { auditLog }: AuditOptions,
): Promise<ListAuditResponse> {
  if (limit > MAX_LIMIT) throw new CoordinatorError("INVALID", `limit: at most ${MAX_LIMIT} entries at once`);
  const count = limit || DEFAULT_LIMIT;
  // There are no entries after the newest one, so this only reads its number.
  const last = newest ? (await auditLog.read(Number.MAX_SAFE_INTEGER, 1)).newest : 0;
  const page = await auditLog.read(newest ? Math.max(0, last - count) : Number(after), count);
  return { lines: [...page.lines], newestSequence: BigInt(page.newest) };
}
