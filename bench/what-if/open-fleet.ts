import { setImmediate as turn } from "node:timers/promises";
import { NodeRecord, NodeStatusRecord } from "@forage/proto/forage/store/v1/store";
import { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { pino } from "pino";
import { applyResources } from "../../coordinator/src/api/forage/apply.ts";
import { startControl } from "../../coordinator/src/control/control.ts";
import { parseIpRange } from "../../coordinator/src/ip/ip-range.ts";
import { recordStatuses } from "../../coordinator/src/link/reports.ts";
import { MetricsCollector } from "../../coordinator/src/metrics/metrics-collector.ts";
import { encodeRecord } from "../../coordinator/src/model/codec.ts";
import { nodeKey, reportKey } from "../../coordinator/src/model/keys.ts";
import { Planner } from "../../coordinator/src/plan/planner.ts";
import { optimisticStatus } from "../../coordinator/src/plan/simulated-nodes.ts";
import { ClusterView } from "../../coordinator/src/state/cluster-view.ts";
import { loadClusterView } from "../../coordinator/src/state/load-view.ts";
import { createMemoryStore } from "../../coordinator/src/store/index.ts";
import { systemClock } from "../../coordinator/src/time/clock.ts";
import { Trials } from "../../coordinator/src/what-if/trials.ts";

export interface FleetSizes {
  readonly nodes: number;
  readonly services: number;
  readonly replicas: number;
  readonly zones: number;
}

/** The number of pods of 250m that fit on a node. */
const PODS_PER_NODE = 16;
const LOG = pino({ level: "silent" });

/** Opens a fleet in memory on which all services run. Its own controllers have stopped. */
export async function openFleet({ nodes, services, replicas, zones }: FleetSizes) {
  const clock = systemClock;
  const store = createMemoryStore({ clock });
  const state = new ClusterView();
  const follow = await loadClusterView(store, state);
  const over = new AbortController();
  const following = follow(over.signal);
  for (let i = 0; i < nodes; i++) {
    const name = `n${i}`;
    const labels = { "topology.kubernetes.io/zone": `z${i % zones}` };
    const allocatable = { cpu: String(PODS_PER_NODE / 4), memory: "8Gi", pods: "110" };
    await store.txn(
      [],
      [
        {
          type: "put",
          key: nodeKey(name),
          value: encodeRecord(NodeRecord, NodeRecord.fromPartial({ name, labels })),
        },
        {
          type: "put",
          key: reportKey(name),
          value: encodeRecord(
            NodeStatusRecord,
            NodeStatusRecord.fromPartial({ name, report: { allocatable } }),
          ),
        },
      ],
    );
  }
  await state.reached(store.revision);
  const nowMs = clock.nowMs();
  for (const { name } of state.nodes())
    state.setNodeHealth(name, { ready: true, message: "", sinceMs: nowMs, lastSeenMs: nowMs }, false);
  const control = controlOptions();
  const metrics = new MetricsCollector({ state, clock, intervalMs: 15_000 });
  const running = startControl({
    ...control,
    ...{ store, state, clock, metrics, log: LOG },
    steps: { report: () => {} },
    events: { record: () => {} },
    readyEndpoints: () => 0,
  });
  const { randomName } = control;
  for (let i = 0; i < services; i++)
    await applyResources(aService(`web-${i}`, replicas), { store, state, clock, randomName });
  await untilReady(services * replicas);
  await running.close();
  metrics.close();
  const planner = new Planner({
    ...{ store, state, nowMs: () => clock.nowMs(), control, apply: { randomName } },
    turn: () => turn(),
  });
  return {
    trials: new Trials({ state, planner }),
    close: async (): Promise<void> => {
      over.abort();
      await following;
      await store.close();
    },
  };

  async function untilReady(pods: number): Promise<void> {
    for (;;) {
      for (const { name } of state.nodes()) {
        const statuses = state.podsOnNode(name).flatMap((pod) => optimisticStatus(pod, true) ?? []);
        if (statuses.length > 0) await recordStatuses(name, statuses, { store, state, clock, log: LOG });
      }
      const isReady = state.pods().filter(({ status }) => status?.ready).length === pods;
      // Rollouts end once their pods have stayed ready.
      if (isReady && state.revisions.all().every(({ record }) => record.good)) return;
      for (let turns = 0; turns < 50; turns++) await turn();
    }
  }
}

function controlOptions() {
  const ip = parseIpRange("10.96.0.0/16");
  if (ip === undefined) throw new TypeError("the range can't be read");
  let names = 0;
  return {
    randomName: (length: number) => String(names++).padStart(length, "0"),
    profile: "pack",
    limits: { deadlineMs: 600_000, placementMs: 20_000, stableMs: 1_000 },
    addresses: { virtualIps: [ip], loadBalancerIps: [], nodePorts: { first: 30_000, last: 32_767 } },
  } as const;
}

function aService(name: string, replicas: number): ApplyResourcesRequest {
  const resources = { requests: { cpu: "250m", memory: "128Mi" } };
  const container = { name: "main", image: "registry.example/web:v1", resources };
  const value = { scaling: { replicas }, container };
  return ApplyResourcesRequest.fromPartial({
    ...{ applyId: name, namespace: "bench", labels: { app: name } },
    resources: [{ name, spec: { $case: "containerService", value } }],
  });
}
