import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { backupMetrics } from "../backups/metrics.ts";
import type { Backups } from "../backups/open-backups.ts";
import type { CertificateController } from "../certificates/controller.ts";
import { certificateMetrics } from "../certificates/metrics.ts";
import type { EventStats } from "../events/recorder.ts";
import type { LivenessStats } from "../link/liveness-stats.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Store } from "../store/index.ts";

export interface Metrics {
  /** Returns all metrics in Prometheus' text format. */
  render(): Promise<string>;
  readonly contentType: string;
  /** Registers the metrics of optional components. */
  add(register: (registers: Registry[]) => void): void;
  observeCall(method: string, code: number, seconds: number): void;
  /**
   * Counts a connection, or some streams, that this side closed because of its peer's behaviour.
   * `port` is the port's name in the configuration.
   */
  observeCut(port: "grpc" | "destination", reason: string, count?: number): void;
}

export interface MetricsSources {
  readonly state: ClusterView;
  readonly store: Store;
  readonly events: { stats(): EventStats };
  /** The certificates; undefined if the cluster has no issuer. */
  readonly certificates?: CertificateController | undefined;
  readonly liveness: LivenessStats;
  /** The backups; undefined if none are written. */
  readonly backups?: Pick<Backups, "stats"> | undefined;
  /** Returns the reason why the controllers make no decisions; undefined if they do. */
  readonly refusal: () => string | undefined;
  readonly nowMs: () => number;
  readonly connections: () => { readonly open: number; readonly anonymous: number };
}

/**
 * The sampling interval of the event loop's delay. The default of 10 ms would wake an idle process
 * a hundred times a second.
 */
export const EVENT_LOOP_SAMPLE_MS = 200;

export const LEADS_HELP = "1 while this coordinator decides and writes.";

const STALL_COUNTERS = [
  [
    "forage_coordinator_stalls_total",
    "How often the process did not run for a while: stopped, starved of CPU, or paused with its machine.",
  ],
  ["forage_hold_ups_total", "The former name of forage_coordinator_stalls_total."],
] as const;

export function createMetrics(sources: MetricsSources): Metrics {
  const { state, store, events, connections, certificates, liveness, refusal } = sources;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: EVENT_LOOP_SAMPLE_MS });
  const registers = [registry];
  const gauge = (name: string, help: string, read: () => number): void => {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  };
  gauge("forage_nodes", "Nodes that have joined.", () => state.nodes().length);
  gauge(
    "forage_nodes_ready",
    "Nodes that are ready.",
    () => state.nodes().filter((n) => n.health.ready).length,
  );
  gauge(
    "forage_nodes_endpoints_kept",
    "Nodes that are lost, whose endpoints are kept in a mass loss.",
    () => state.nodes().filter((n) => n.health.kept).length,
  );
  gauge(
    "forage_nodes_mass_loss",
    "1 while most nodes are lost at once, and until they had time to return.",
    () => (liveness.massLoss() ? 1 : 0),
  );
  gauge(
    "forage_store_rolled_back",
    "1 when an old copy of the data directory was put back, and nothing is decided or written.",
    () => (refusal() === undefined ? 0 : 1),
  );
  gauge("forage_reports_unwritten", "Agents' reports that could not be stored and are kept in memory.", () =>
    liveness.unwrittenReports(),
  );
  for (const [name, help] of STALL_COUNTERS)
    new Counter({
      ...{ name, help, registers },
      collect() {
        this.reset();
        this.inc(liveness.stalls());
      },
    });
  gauge("forage_pods_unplaced", "Pods that are not placed on a node yet.", () => state.unboundPods().length);
  gauge("forage_rollouts_active", "Rollouts that have not finished.", () => state.activeRollouts().length);
  gauge("forage_store_revision", "The store's newest revision.", () => store.revision);
  gauge("forage_coordinator_leads", LEADS_HELP, () => 1);
  gauge("forage_store_writable", "1 while the store accepts writes.", () =>
    store.health().status === "ok" ? 1 : 0,
  );
  gauge("forage_connections_open", "Open TLS connections.", () => connections().open);
  podsByPhase(state, registers);
  eventMetrics(events, registers);
  if (sources.backups !== undefined) backupMetrics(sources.backups, registers);
  if (certificates !== undefined) certificateMetrics(certificates, sources.nowMs, registers);
  return {
    render: () => registry.metrics(),
    contentType: registry.contentType,
    add: (register) => register(registers),
    observeCall: countCalls(registers),
    observeCut: countCuts(registers),
  };
}

export function countCalls(registers: Registry[]): Metrics["observeCall"] {
  const calls = new Counter({
    name: "forage_grpc_calls_total",
    help: "gRPC calls that ended, by method and status code.",
    labelNames: ["method", "code"],
    registers,
  });
  const seconds = new Histogram({
    name: "forage_grpc_call_seconds",
    help: "How long gRPC calls took; streams count from their first to their last message.",
    labelNames: ["method"],
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60, 600],
    registers,
  });
  return (method, code, duration) => {
    calls.inc({ method, code: String(code) });
    seconds.observe({ method }, duration);
  };
}

export function countCuts(registers: Registry[]): Metrics["observeCut"] {
  const cuts = new Counter({
    name: "forage_http2_cuts_total",
    help: "Connections, and with the reason STALLED streams, that were ended because of what their clients did, by port and reason.",
    labelNames: ["port", "reason"],
    registers,
  });
  return (port, reason, count = 1) => cuts.inc({ port, reason }, count);
}

function eventMetrics(events: MetricsSources["events"], registers: Registry[]): void {
  new Gauge({
    name: "forage_events_kept",
    help: "Events that are kept at present.",
    registers,
    collect() {
      this.set(events.stats().kept);
    },
  });
  new Counter({
    name: "forage_events_recorded_total",
    help: "Events that were recorded, repetitions included.",
    registers,
    collect() {
      this.reset();
      this.inc(events.stats().recorded);
    },
  });
  new Counter({
    name: "forage_events_dropped_total",
    help: "Events that were dropped because an object exceeded its rate, or because the store accepted no writes.",
    labelNames: ["why"],
    registers,
    collect() {
      this.reset();
      const { droppedByRate, droppedByBacklog } = events.stats();
      this.inc({ why: "rate" }, droppedByRate);
      this.inc({ why: "backlog" }, droppedByBacklog);
    },
  });
}

function podsByPhase(state: ClusterView, registers: Registry[]): void {
  new Gauge({
    name: "forage_pods",
    help: "Pods by phase.",
    labelNames: ["phase"],
    registers,
    collect() {
      this.reset();
      for (const { status } of state.pods()) this.inc({ phase: phaseName(status?.phase) });
    },
  });
}

function phaseName(phase: PodPhase | undefined): string {
  const name = Object.entries(PodPhase).find(([, value]) => value === phase)?.[0];
  return (name ?? "PENDING").toLowerCase();
}
