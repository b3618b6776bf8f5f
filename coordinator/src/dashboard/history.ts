import type { ClusterView } from "../state/cluster-view.ts";
import type { Clock } from "../time/clock.ts";
import {
  FLEET_SERIES,
  type FleetSeries,
  type HistoryView,
  SCALING_SERIES,
  type ScalingSeries,
} from "./history-view.ts";
import { SampleRing } from "./sample-ring.ts";

export interface HistoryOptions {
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly autoscale: {
    statusOf(
      namespace: string,
      name: string,
    ): { readonly currentReplicas: number; readonly desiredReplicas: number } | undefined;
  };
}

const INTERVAL_MS = 30_000;
/** Four hours. Prometheus is for longer times. */
export const MAX_SAMPLES = 480;
/** Soon, so that graphs begin with the coordinator. */
const FIRST_MS = 1_000;
/** The first so many by name have a graph. Each takes 4 KB. */
export const MAX_SCALED_WORKLOADS = 100;
const RING = { intervalMs: INTERVAL_MS, maxSamples: MAX_SAMPLES };

/** Keeps samples of the last hours: of the fleet in 12 KB, and of autoscaled workloads. They are lost when the coordinator ends. */
export class History {
  readonly #options: HistoryOptions;
  readonly #fleet = new SampleRing({ names: FLEET_SERIES, ...RING });
  /** Keyed by `namespace/name`. */
  readonly #scaled = new Map<string, SampleRing<ScalingSeries>>();
  #cancel = (): void => {};

  constructor(options: HistoryOptions) {
    this.#options = options;
    this.#later(FIRST_MS);
  }

  fleet(): HistoryView<FleetSeries> {
    return this.#fleet.view();
  }

  /** Returns undefined for a container service without a graph. */
  scaling(namespace: string, name: string): HistoryView<ScalingSeries> | undefined {
    return this.#scaled.get(`${namespace}/${name}`)?.view();
  }

  close(): void {
    this.#cancel();
  }

  #later(delayMs: number): void {
    this.#cancel = this.#options.clock.schedule(delayMs, () => {
      this.#take();
      this.#later(INTERVAL_MS);
    });
  }

  #take(): void {
    const { state, clock } = this.#options;
    const nowMs = clock.nowMs();
    this.#fleet.take(fleetNow(state), nowMs);
    const found = this.#scaledNow();
    for (const key of this.#scaled.keys()) if (!found.has(key)) this.#scaled.delete(key);
    for (const [key, now] of found) {
      const ring = this.#scaled.get(key) ?? new SampleRing({ names: SCALING_SERIES, ...RING });
      this.#scaled.set(key, ring);
      ring.take(now, nowMs);
    }
  }

  #scaledNow(): ReadonlyMap<string, Readonly<Record<ScalingSeries, number>>> {
    const { state, autoscale } = this.#options;
    const all = state.resources().flatMap(({ record: { namespace, kind, name } }) => {
      const status = kind === "container_service" ? autoscale.statusOf(namespace, name) : undefined;
      if (status === undefined) return [];
      const now = { current: status.currentReplicas, desired: status.desiredReplicas };
      return [[`${namespace}/${name}`, now] as const];
    });
    return new Map(all.sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, MAX_SCALED_WORKLOADS));
  }
}

function fleetNow(state: ClusterView): Record<FleetSeries, number> {
  const sums = { nodesReady: 0, podsReady: 0, pods: 0, cpuMilli: 0, memoryBytes: 0, restarts: 0 };
  for (const { health } of state.nodes()) {
    if (health.ready) sums.nodesReady++;
    sums.cpuMilli += health.usage?.cpuMilli ?? 0;
    sums.memoryBytes += health.usage?.memoryBytes ?? 0;
  }
  for (const { status } of state.pods()) {
    sums.pods++;
    if (status?.ready === true) sums.podsReady++;
    for (const { restartCount } of status?.containers ?? []) sums.restarts += restartCount;
  }
  return sums;
}
