import type { RolloutRecord } from "@forage/proto/forage/store/v1/store";
import { toEpochMs } from "../model/timestamp.ts";

type Ordered = Pick<RolloutRecord, "id" | "storeRevision" | "createdAt">;

/**
 * Compares rollouts by the store's revision at which they began, independent of the clock. Rollouts of earlier versions
 * have no revision, and come first, ordered by their times.
 */
export function compareRollouts(a: Ordered, b: Ordered): number {
  if (a.storeRevision !== b.storeRevision) return a.storeRevision < b.storeRevision ? -1 : 1;
  const createdMs = ({ createdAt }: Ordered): number => toEpochMs(createdAt) ?? 0;
  return createdMs(a) - createdMs(b) || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}
