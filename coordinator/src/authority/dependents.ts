import { toEpochMs } from "../model/timestamp.ts";
import type { NodeEntry } from "../state/entries.ts";

export interface DependentsOptions {
  /** The pin of the next authority. */
  readonly nextPin: string;
  /** The time for which an expired certificate can still be renewed. */
  readonly graceMs: number;
  readonly nowMs: number;
}

/**
 * Returns the nodes that could not connect without the older authority, because they have not
 * connected with a certificate of the next one. Nodes whose certificate can no longer be renewed
 * are excluded, because they must join again in any case.
 */
export function dependents(nodes: readonly NodeEntry[], options: DependentsOptions): readonly string[] {
  const { nextPin, graceMs, nowMs } = options;
  return nodes
    .filter(({ record }) => {
      if (record.revoked || record.connectedAuthority === nextPin) return false;
      const endsMs = toEpochMs(record.certificateEnds);
      return endsMs === undefined || endsMs + graceMs > nowMs;
    })
    .map(({ name }) => name)
    .sort();
}
