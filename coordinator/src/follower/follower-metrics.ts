import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { countCalls, countCuts, EVENT_LOOP_SAMPLE_MS, LEADS_HELP, type Metrics } from "../http/metrics.ts";

export interface FollowerMetricsSources {
  /** Returns the milliseconds since the store was last known to be complete. */
  readonly behindMs: () => number;
  readonly revision: () => number;
  readonly connections: () => { readonly open: number };
}

/** Creates the metrics of a follower. */
export function createFollowerMetrics({ behindMs, revision, connections }: FollowerMetricsSources): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: EVENT_LOOP_SAMPLE_MS });
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
  gauge("forage_coordinator_leads", LEADS_HELP, () => 0);
  gauge(
    "forage_follower_behind_seconds",
    "Time since this coordinator last knew that it has all of the store.",
    () => behindMs() / 1000,
  );
  gauge("forage_store_revision", "The store's newest revision.", revision);
  gauge("forage_connections_open", "Open TLS connections.", () => connections().open);
  return {
    render: () => registry.metrics(),
    contentType: registry.contentType,
    add: (register) => register(registers),
    observeCall: countCalls(registers),
    observeCut: countCuts(registers),
  };
}
