import type { ClusterView } from "../state/cluster-view.ts";
import type { Clock } from "../time/clock.ts";
import {
  FLEET_SERIES,
  type FleetSeries,
  type PresentView,
  SCALING_SERIES,
  type ScalingSeries,
} from "./history-view.ts";
import { GatewayTraffic, Increases, type TrafficTotals } from "./increases.ts";
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
/** The samples of four hours. Prometheus is for longer times. */
export const MAX_SAMPLES = 480;
/** The delay of the first sample, so that graphs begin soon after the start. */
const FIRST_MS = 1_000;
/** The most workloads with a graph, the first ones by name. Each needs 4 KB. */
export const MAX_SCALED_WORKLOADS = 100;
const RING = { intervalMs: INTERVAL_MS, maxSamples: MAX_SAMPLES };

/**
 * Keeps samples of the last hours in memory: of the fleet in 16 KB, and of autoscaled workloads.
 */
export class History {
  readonly #options: HistoryOptions;
  readonly #fleet = new SampleRing({ names: FLEET_SERIES, ...RING });
  readonly #restarts = new Increases();
  #restartCounts: ReadonlyMap<string, number> = new Map();
  readonly #traffic: GatewayTraffic;
  /** Samples by `namespace/name`. */
  readonly #scaled = new Map<string, SampleRing<ScalingSeries>>();
  #cancel = (): void => {};

  constructor(options: HistoryOptions) {
    this.#options = options;
    this.#traffic = new GatewayTraffic();
    this.#later(FIRST_MS);
  }

  fleet(): PresentView<FleetSeries> {
    return this.#fleet.presentView();
  }

  /**
   * Returns the samples of a container service; empty if it is not autoscaled or has no samples
   * yet.
   */
  scaling(namespace: string, name: string): PresentView<ScalingSeries> {
    return (this.#scaled.get(`${namespace}/${name}`) ?? emptyRing()).presentView();
  }

  close(): void {
    this.#cancel();
  }

  #later(delayMs: number): void {
    this.#cancel = this.#options.clock.schedule(delayMs, () => {
      this.#sample();
      this.#later(INTERVAL_MS);
    });
  }

  #sample(): void {
    const { state, clock } = this.#options;
    const nowMs = clock.nowMs();
    this.#restartCounts = restartCounts(state, this.#restartCounts);
    this.#fleet.push(
      {
        ...fleetNow(state),
        restarts: this.#restarts.update(this.#restartCounts),
        ...this.#traffic.update(gatewayTotals(state), clock.monotonicMs()),
      },
      nowMs,
    );
    const found = this.#scaledNow();
    for (const key of this.#scaled.keys()) if (!found.has(key)) this.#scaled.delete(key);
    for (const [key, now] of found) {
      const ring = this.#scaled.get(key) ?? emptyRing();
      this.#scaled.set(key, ring);
      ring.push(now, nowMs);
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

function emptyRing(): SampleRing<ScalingSeries> {
  return new SampleRing({ names: SCALING_SERIES, ...RING });
}

/** Returns the present values. The use of nodes is unknown until one of them has reported it. */
function fleetNow(state: ClusterView) {
  const reported = state.nodes().flatMap(({ health: { usage } }) => usage ?? []);
  const sum = (values: readonly number[]): number =>
    values.length === 0 ? Number.NaN : values.reduce((all, value) => all + value, 0);
  const pods = state.pods();
  return {
    nodesReady: state.nodes().filter(({ health }) => health.ready).length,
    podsReady: pods.filter(({ status }) => status?.ready === true).length,
    pods: pods.length,
    cpuMilli: sum(reported.map(({ cpuMilli }) => cpuMilli)),
    memoryBytes: sum(reported.map(({ memoryBytes }) => memoryBytes)),
  };
}

/**
 * Returns the highest reported number of restarts of each pod, by uid. A report can briefly lack
 * containers, whose restarts must not count again afterwards.
 */
function restartCounts(state: ClusterView, before: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  return new Map(
    state.pods().map(({ record, status }) => {
      const containers = status?.containers ?? [];
      const reported = containers.reduce((sum, { restartCount }) => sum + restartCount, 0);
      return [record.uid, Math.max(reported, before.get(record.uid) ?? 0)] as const;
    }),
  );
}

/**
 * Returns the number of requests that each gateway has answered since its proxy started, by node.
 */
function gatewayTotals(state: ClusterView): ReadonlyMap<string, TrafficTotals> {
  return new Map(
    state
      .nodes()
      .flatMap(({ name, health }) => (health.traffic === undefined ? [] : [[name, health.traffic]])),
  );
}
