import type { BackupRecord, Generation } from "@forage/proto/forage/workspaces/v1/records";
import { CoordinatorError } from "../../errors.ts";
import { toEpochMs } from "../../model/timestamp.ts";

/**
 * The annotation that selects an older backup. 0, like no annotation, selects the newest, 1 the one
 * before.
 */
export const GENERATION_ANNOTATION = "forage.dev/backup-generation";

/**
 * Returns the backup that a start restores. Throws INVALID if the annotation selects a backup that
 * does not exist.
 */
export function chooseRestore(
  annotations: Readonly<Record<string, string>>,
  backup: BackupRecord | undefined,
): Generation | undefined {
  const generations = backup?.generations ?? [];
  const text = annotations[GENERATION_ANNOTATION];
  if (text === undefined) return generations[0];
  const found = /^\d{1,4}$/.test(text) ? generations[Number(text)] : undefined;
  if (found !== undefined) return found;
  const kept = generations.map(({ at }, index) => `${index} (${new Date(toEpochMs(at) ?? 0).toISOString()})`);
  const field = `metadata.annotations[${GENERATION_ANNOTATION}]`;
  const description =
    kept.length === 0 ? "there is no backup of this workspace" : `must be one of ${kept.join(", ")}`;
  throw new CoordinatorError("INVALID", `the request is invalid: ${field}: ${description}`, {
    violations: [{ field, description }],
  });
}
