import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterView } from "../state/cluster-view.ts";
import { createMetrics, type MetricsSources } from "./metrics.ts";

const STORE: Pick<MetricsSources["store"], "revision" | "health"> = {
  revision: 7,
  health: () => ({ status: "ok" }),
};

test("renders the figures of the coordinator's parts", async () => {
  const metrics = createMetrics({
    state: new ClusterView(),
    store: STORE as MetricsSources["store"],
    events: { stats: () => ({ recorded: 11, droppedByRate: 2, droppedByBacklog: 3, kept: 5, bytes: 0 }) },
    liveness: { stalls: () => 4, massLoss: () => true, unwrittenReports: () => 6 },
    backups: { stats: () => ({ lastMs: 8_000, failures: 9 }) },
    refusal: () => undefined,
    nowMs: () => 0,
    connections: () => ({ open: 12, anonymous: 1 }),
  });
  metrics.observeCall("/m", 5, 0.01);
  metrics.observeCut("grpc", "RESETS", 3);
  // The second reading shows that counters are set, and not added up.
  await metrics.render();
  const lines = (await metrics.render()).split("\n");
  for (const line of [
    "forage_events_recorded_total 11",
    'forage_events_dropped_total{why="rate"} 2',
    'forage_events_dropped_total{why="backlog"} 3',
    "forage_events_kept 5",
    "forage_coordinator_stalls_total 4",
    "forage_hold_ups_total 4",
    "forage_nodes_mass_loss 1",
    "forage_reports_unwritten 6",
    "forage_store_revision 7",
    "forage_store_rolled_back 0",
    "forage_store_writable 1",
    "forage_coordinator_leads 1",
    "forage_connections_open 12",
    'forage_grpc_calls_total{method="/m",code="5"} 1',
    'forage_http2_cuts_total{port="grpc",reason="RESETS"} 3',
  ])
    assert.ok(lines.includes(line), `${line} is missing`);
});
