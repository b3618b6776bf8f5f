import { TXN_BYTES_MAX } from "../limits.ts";
import type { Compare, Op } from "../store.ts";
import { StoreError } from "../store-error.ts";
import type { Change, Timeline, Version } from "./timeline.ts";

export interface Decision {
  readonly succeeded: boolean;
  /** Empty when the transaction changes nothing. */
  readonly changes: readonly Change[];
}

/** Computes the effects of a valid transaction on the head of the timeline. Changes nothing itself. */
export function decide(timeline: Timeline, compares: readonly Compare[], ops: readonly Op[]): Decision {
  const head = timeline.head;
  const holds = compares.every((compare) => compareHolds(compare, timeline.read(compare.key, head)));
  if (!holds) return { succeeded: false, changes: [] };

  const changes: Change[] = [];
  const deleted = new Set<string>();
  const remove = (key: string): void => {
    if (deleted.has(key) || timeline.read(key, head) === undefined) return;
    deleted.add(key);
    changes.push({ kind: "delete", key });
  };
  for (const op of ops) {
    if (op.kind === "put") changes.push({ kind: "put", key: op.key, value: op.value, lease: op.lease });
    else if (op.kind === "delete") remove(op.key);
    else for (const key of keysUnder(timeline, op.prefix)) remove(key);
  }
  return { succeeded: true, changes };
}

export function deletions(keys: Iterable<string>): Change[] {
  return Array.from(keys, (key) => ({ kind: "delete", key }) as const);
}

function compareHolds(compare: Compare, found: Version | undefined): boolean {
  switch (compare.kind) {
    case "exists":
      return found !== undefined;
    case "absent":
      return found === undefined;
    case "modRevision":
      return (found?.modRevision ?? 0) === compare.revision;
    case "createRevision":
      return (found?.createRevision ?? 0) === compare.revision;
    case "version":
      return (found?.version ?? 0) === compare.version;
    case "value":
      return found?.value !== undefined && Buffer.compare(found.value, compare.value) === 0;
    default:
      return compare satisfies never;
  }
}

/** The keys themselves go into the commit, so they count towards its size. */
function keysUnder(timeline: Timeline, prefix: string): string[] {
  const query = { prefix, at: timeline.head, after: "", limit: Number.POSITIVE_INFINITY };
  const keys = timeline.range(query).map((version) => version.key);
  const bytes = keys.reduce((sum, key) => sum + key.length, 0);
  if (bytes > TXN_BYTES_MAX) {
    throw new StoreError(
      "TOO_LARGE",
      `${keys.length} keys under ${JSON.stringify(prefix)}: delete them in parts`,
    );
  }
  return keys;
}
