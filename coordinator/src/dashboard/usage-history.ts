import { nodeUsage, type PodUsageSource, podUsage } from "../api/operator/usage-view.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Clock } from "../time/clock.ts";
import { type PresentView, USAGE_SERIES, type UsageSeries } from "./history-view.ts";
import { SampleRing } from "./sample-ring.ts";

export interface UsageHistoryOptions {
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly usage: PodUsageSource;
  /** Default: MAX_NODES. */
  readonly maxNodes?: number;
  /** Default: MAX_PODS. */
  readonly maxPods?: number;
}

type Ring = SampleRing<UsageSeries>;
type Sample = Readonly<Record<UsageSeries, number>>;

/**
 * The interval of samples; with MAX_SAMPLES they cover four hours. One sample a minute is precise
 * enough, at half the memory of the fleet's interval.
 */
const INTERVAL_MS = 60_000;
const MAX_SAMPLES = 240;
/**
 * The most nodes with a graph. Graphs of all nodes and pods need 21 MB; further ones get a graph
 * when others are removed.
 */
const MAX_NODES = 1_000;
const MAX_PODS = 10_000;
const UNKNOWN: Sample = { cpuMilli: Number.NaN, memoryBytes: Number.NaN };

/** Keeps samples of the CPU and memory that each node and pod used in the last hours, in memory. */
export class UsageHistory {
  readonly #options: UsageHistoryOptions;
  /** Samples by node name. */
  readonly #nodes = new Map<string, Ring>();
  /** Samples by pod uid, so that a new pod with a former pod's name begins a new graph. */
  readonly #pods = new Map<string, Ring>();
  #cancel = (): void => {};

  constructor(options: UsageHistoryOptions) {
    this.#options = options;
    this.#later();
  }

  /** The memory of all samples in bytes. */
  get bytes(): number {
    return [...this.#nodes.values(), ...this.#pods.values()].reduce((sum, ring) => sum + ring.byteLength, 0);
  }

  /**
   * Returns the samples of a node; empty before its first heartbeat and beyond the limit of graphs.
   */
  node(name: string): PresentView<UsageSeries> {
    const node = this.#options.state.node(name);
    return this.#view(this.#nodes.get(name), node && sampleOf(nodeUsage(node.health)));
  }

  /** Returns the samples of a pod; empty before it runs and beyond the limit of graphs. */
  pod(namespace: string, name: string): PresentView<UsageSeries> {
    const { state, usage } = this.#options;
    const pod = state.pod(namespace, name);
    const now = pod === undefined ? undefined : sampleOf(podUsage(state, pod, usage));
    return this.#view(this.#pods.get(pod?.record.uid ?? ""), now);
  }

  close(): void {
    this.#cancel();
  }

  #view(ring: Ring | undefined, { cpuMilli, memoryBytes }: Sample = UNKNOWN): PresentView<UsageSeries> {
    const now = { cpuMilli: orNull(cpuMilli), memoryBytes: orNull(memoryBytes) };
    return { ...(ring ?? emptyRing()).view(), nowMs: this.#options.clock.nowMs(), now };
  }

  #later(): void {
    this.#cancel = this.#options.clock.schedule(INTERVAL_MS, () => {
      this.#sample();
      this.#later();
    });
  }

  #sample(): void {
    const { state, clock, usage, maxNodes = MAX_NODES, maxPods = MAX_PODS } = this.#options;
    const nowMs = clock.nowMs();
    const nodes = state.nodes().map((node) => [node.name, sampleOf(nodeUsage(node.health))] as const);
    const pods = state.pods().map((pod) => [pod.record.uid, sampleOf(podUsage(state, pod, usage))] as const);
    addToEach(this.#nodes, nodes, { nowMs, maxRings: maxNodes });
    addToEach(this.#pods, pods, { nowMs, maxRings: maxPods });
  }
}

/**
 * Drops the rings of removed objects, makes rings for objects with a first value, and adds a sample
 * to each ring.
 */
function addToEach(
  rings: Map<string, Ring>,
  samples: readonly (readonly [key: string, sample: Sample | undefined])[],
  { nowMs, maxRings }: { readonly nowMs: number; readonly maxRings: number },
): void {
  const present = new Set(samples.map(([key]) => key));
  for (const key of rings.keys()) if (!present.has(key)) rings.delete(key);
  for (const [key, sample] of samples) {
    const known = rings.get(key);
    if (known === undefined && (sample === undefined || rings.size >= maxRings)) continue;
    const ring = known ?? emptyRing();
    rings.set(key, ring);
    ring.push(sample ?? UNKNOWN, nowMs);
  }
}

function emptyRing(): Ring {
  return new SampleRing({ names: USAGE_SERIES, intervalMs: INTERVAL_MS, maxSamples: MAX_SAMPLES });
}

function orNull(value: number): number | null {
  return Number.isNaN(value) ? null : value;
}

function sampleOf(usage: ReturnType<typeof nodeUsage>): Sample | undefined {
  if (usage === undefined) return undefined;
  const { cpuMilli, memoryBytes } = usage;
  return {
    cpuMilli: cpuMilli === undefined ? Number.NaN : Number(cpuMilli),
    memoryBytes: Number(memoryBytes),
  };
}
