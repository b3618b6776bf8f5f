import type { TestContext } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import {
  NodeRecord,
  NodeStatusRecord,
  PodRecord,
  PodStatusRecord,
  ResourceRecord,
  RolloutRecord,
} from "@forage/proto/forage/store/v1/store";
import { encodeRecord } from "../../src/model/codec.ts";
import { nodeKey, reportKey, rolloutKey, statusKey } from "../../src/model/keys.ts";
import { toTimestamp } from "../../src/model/timestamp.ts";
import { ClusterView } from "../../src/state/cluster-view.ts";
import type { NodeEntry, PodEntry, ResourceEntry, RolloutEntry } from "../../src/state/entries.ts";
import { loadClusterView } from "../../src/state/load-view.ts";
import { createMemoryStore, type Op, type Store } from "../../src/store/index.ts";

export interface Contents {
  readonly resources?: readonly ResourceEntry[];
  readonly pods?: readonly PodEntry[];
  readonly nodes?: readonly NodeEntry[];
  readonly rollouts?: readonly RolloutEntry[];
}

/** Returns a view that follows an in-memory store with the entries' records. */
export async function aView(
  t: TestContext,
  contents: Contents = {},
): Promise<{ readonly store: Store; readonly state: ClusterView; readonly clock: VirtualClock }> {
  const clock = new VirtualClock({ startMs: 1_000_000 });
  const store = createMemoryStore({ clock });
  for (const op of opsOf(contents)) await store.txn([], [op]);
  const state = new ClusterView();
  const follow = await loadClusterView(store, state);
  const end = new AbortController();
  const following = follow(end.signal);
  t.after(async () => {
    end.abort();
    await following;
    await store.close();
  });
  for (const { name, health } of contents.nodes ?? []) state.setNodeHealth(name, health, false);
  return { store, state, clock };
}

/** Returns the operations that write the entries' records. */
export function opsOf({ resources = [], pods = [], nodes = [], rollouts = [] }: Contents): Op[] {
  return [
    ...resources.map((r): Op => put(r.key, encodeRecord(ResourceRecord, r.record))),
    ...pods.map((p): Op => put(p.key, encodeRecord(PodRecord, p.record))),
    ...pods.flatMap((p): Op[] => statusOps(p)),
    ...nodes.map((n): Op => put(nodeKey(n.name), encodeRecord(NodeRecord, n.record))),
    ...nodes.flatMap((n): Op[] =>
      n.report === undefined ? [] : [put(reportKey(n.name), encodeRecord(NodeStatusRecord, n.report))],
    ),
    ...rollouts.map((r): Op => put(rolloutKey(r.id), encodeRecord(RolloutRecord, r.record))),
  ];
}

function statusOps({ record, status, observedAtMs }: PodEntry): Op[] {
  if (status === undefined) return [];
  const observedAt = observedAtMs === undefined ? undefined : toTimestamp(observedAtMs);
  const value = encodeRecord(PodStatusRecord, {
    node: record.node,
    status,
    observedAt,
    readySince: undefined,
  });
  return [put(statusKey(record.namespace, record.name), value)];
}

function put(key: string, value: Uint8Array): Op {
  return { type: "put", key, value };
}
