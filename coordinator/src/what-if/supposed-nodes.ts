import { NodeRecord, NodeStatusRecord } from "@forage/proto/forage/store/v1/store";
import type { StoreWrite } from "../model/batches.ts";
import { encodeRecord } from "../model/codec.ts";
import { nodeKey, reportKey } from "../model/keys.ts";
import { toTimestamp } from "../model/timestamp.ts";
import type { NodeEntry } from "../state/entries.ts";
import { HOSTNAME_LABEL } from "../state/node-labels.ts";

/** Labels that identify one machine. */
const OF_ONE_MACHINE: ReadonlySet<string> = new Set([HOSTNAME_LABEL, "hostname"]);

/** Returns this number of names of nodes that do not exist yet. */
export function namesLike(like: string, count: number, exists: (name: string) => boolean): string[] {
  const names: string[] = [];
  for (let number = 1; names.length < count; number++) {
    const name = `${like}-added-${number}`;
    if (!exists(name)) names.push(name);
  }
  return names;
}

/**
 * Returns the writes that add a copy of a node as if it had just joined: without pods and not
 * cordoned.
 */
export function nodeLike({ record, report }: NodeEntry, name: string, nowMs: number): StoreWrite {
  const { labels, taints } = record;
  const added = NodeRecord.fromPartial({
    name,
    joinedAt: toTimestamp(nowMs),
    labels: withoutIdentity(labels),
    taints,
  });
  const known = report?.report;
  const reported = NodeStatusRecord.fromPartial({
    ...report,
    name,
    ...(known && { report: { ...known, labels: withoutIdentity(known.labels), claims: [], images: [] } }),
  });
  return {
    compares: [],
    ops: [
      { type: "put", key: nodeKey(name), value: encodeRecord(NodeRecord, added) },
      { type: "put", key: reportKey(name), value: encodeRecord(NodeStatusRecord, reported) },
    ],
  };
}

function withoutIdentity(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).filter(([key]) => !OF_ONE_MACHINE.has(key)));
}
