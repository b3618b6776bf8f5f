import type { Clock } from "@forage/common/clock";
import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { NodeRecord, PodRecord, PodStatusRecord } from "@forage/proto/forage/store/v1/store";
import { LiveTables } from "../../coordinator/src/dashboard/live/live-tables.ts";
import { encodeRecord } from "../../coordinator/src/model/codec.ts";
import { nodeKey, podKey, statusKey } from "../../coordinator/src/model/keys.ts";
import { ClusterView } from "../../coordinator/src/state/cluster-view.ts";

/** The coordinator's live tables over a fleet that only exists in its view. */
export interface HollowFleet {
  readonly tables: LiveTables;
  /** Changes the number of restarts of the next `count` pods, in turn. */
  change(count: number): void;
}

const NAMESPACE = "shop";
const WORKLOAD = { workloadKind: "container_service", workloadName: "web" };

export function makeHollowFleet(nodeCount: number, podCount: number, clock: Clock): HollowFleet {
  const state = new ClusterView();
  let revision = 0;
  const put = (records: readonly (readonly [key: string, value: Uint8Array])[]): void => {
    revision++;
    const at = { createRevision: 1, modRevision: revision, version: 1 };
    state.apply(
      records.map(([key, value]) => ({ type: "put", record: { key, value, ...at } })),
      revision,
    );
  };
  const nodeNames = Array.from({ length: nodeCount }, (_, index) => `edge-${index}`);
  put(nodeNames.map((name) => [nodeKey(name), encodeRecord(NodeRecord, NodeRecord.fromPartial({ name }))]));
  for (const name of nodeNames) {
    const usage = { cpuMilli: 500, memoryBytes: 1024 ** 3 };
    state.setNodeHealth(name, { ready: true, message: "", lastSeenMs: clock.nowMs(), usage }, false);
  }
  const nodeOf = (index: number): string => nodeNames[index % nodeCount] ?? "";
  const pods = Array.from({ length: podCount }, (_, index) => index);
  put(pods.map((index) => podRecord(index, nodeOf(index))));
  put(pods.map((index) => statusRecord(index, nodeOf(index), 0)));
  let changes = 0;
  return {
    tables: new LiveTables({
      ...{ state, clock },
      autoscale: { statusOf: () => undefined },
      gateways: { statusOf: () => undefined, nodeState: () => undefined } as never,
      unschedulable: { get: () => undefined },
    }),
    change: (count) => {
      const from = changes;
      changes += count;
      const changed = Array.from({ length: count }, (_, index) => from + index);
      put(
        changed.map((at) => {
          const index = at % podCount;
          return statusRecord(index, nodeOf(index), 1 + Math.floor(at / podCount));
        }),
      );
    },
  };
}

function podRecord(index: number, node: string): readonly [string, Uint8Array] {
  const name = `web-${index}`;
  const template = { container: { name: "main", image: "registry.example/web:v1" } };
  const own = { uid: `uid-${index}`, namespace: NAMESPACE, name, node, ...WORKLOAD };
  const record = PodRecord.fromPartial({ ...own, template, templateHash: "0123456789ab" });
  return [podKey(NAMESPACE, name), encodeRecord(PodRecord, record)];
}

function statusRecord(index: number, node: string, restartCount: number): readonly [string, Uint8Array] {
  const containers = [{ name: "main", ready: true, restartCount }];
  const status = { uid: `uid-${index}`, phase: PodPhase.RUNNING, ready: true, containers };
  const record = PodStatusRecord.fromPartial({ node, status });
  return [statusKey(NAMESPACE, `web-${index}`), encodeRecord(PodStatusRecord, record)];
}
