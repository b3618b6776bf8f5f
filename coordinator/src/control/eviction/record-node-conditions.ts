import { NodeRecord } from "@forage/proto/forage/store/v1/store";
import type { StoreWrite } from "../../model/batches.ts";
import { encodeRecord } from "../../model/codec.ts";
import { nodeKey } from "../../model/keys.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { NodeEntry } from "../../state/entries.ts";
import { isNotReady } from "../../state/node-taints.ts";

/**
 * Returns the write that records since when the node is lost or broken, or that it no longer is. A recorded time stays
 * unchanged, so that tolerations expire at the same time even if the coordinator restarts in between. Pure.
 */
export function recordNodeConditions(node: NodeEntry, nowMs: number): StoreWrite | undefined {
  const { health, record } = node;
  const lostMs = health.ready ? undefined : health.sinceMs;
  const unreachableSince =
    lostMs === undefined ? undefined : (record.unreachableSince ?? toTimestamp(lostMs));
  const notReadySince = isNotReady(node) ? (record.notReadySince ?? toTimestamp(nowMs)) : undefined;
  if (unreachableSince === record.unreachableSince && notReadySince === record.notReadySince)
    return undefined;
  return rewriteNode(node, { ...record, unreachableSince, notReadySince });
}

export function rewriteNode(node: NodeEntry, record: NodeRecord): StoreWrite {
  const key = nodeKey(node.name);
  return {
    compares: [{ type: "mod-revision", key, revision: node.revision }],
    ops: [{ type: "put", key, value: encodeRecord(NodeRecord, record) }],
  };
}
