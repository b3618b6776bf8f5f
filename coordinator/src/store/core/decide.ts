import { TXN_BYTES_MAX } from "../limits.ts";
import { packBytes } from "../packed-bytes.ts";
import type { Compare, Op } from "../store.ts";
import { StoreError } from "../store-error.ts";
import type { Change, Timeline, Version } from "./timeline.ts";

export interface Decision {
  readonly succeeded: boolean;
  /** The changes to commit. Empty if the transaction changes nothing. */
  readonly changes: readonly Change[];
}

/** Returns the effects of a valid transaction on the head of the timeline, without applying them. */
export function decide(timeline: Timeline, compares: readonly Compare[], ops: readonly Op[]): Decision {
  const head = timeline.head;
  const holds = compares.every((compare) => compareHolds(compare, timeline.read(compare.key, head)));
  if (!holds) return { succeeded: false, changes: [] };

  const changes: Change[] = [];
  const deleted = new Set<string>();
  const remove = (key: string): void => {
    if (deleted.has(key) || timeline.read(key, head) === undefined) return;
    deleted.add(key);
    changes.push({ type: "delete", key });
  };
  for (const op of ops) {
    if (op.type === "put") changes.push({ type: "put", key: op.key, value: op.value, lease: op.lease });
    else if (op.type === "delete") remove(op.key);
    else for (const key of keysUnder(timeline, op.prefix)) remove(key);
  }
  return { succeeded: true, changes };
}

export function deletions(keys: Iterable<string>): Change[] {
  return Array.from(keys, (key) => ({ type: "delete", key }) as const);
}

function compareHolds(compare: Compare, found: Version | undefined): boolean {
  switch (compare.type) {
    case "exists":
      return found !== undefined;
    case "absent":
      return found === undefined;
    case "mod-revision":
      return (found?.modRevision ?? 0) === compare.revision;
    case "create-revision":
      return (found?.createRevision ?? 0) === compare.revision;
    case "version":
      return (found?.version ?? 0) === compare.version;
    case "value":
      return found?.value === packBytes(compare.value);
    default:
      return compare satisfies never;
  }
}

/** Returns the keys to delete. They are part of the commit, so they count towards its size. */
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
