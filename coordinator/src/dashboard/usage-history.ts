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

/** With MAX_SAMPLES four hours. One for each minute shows what an operator looks for, in half the memory of the fleet's interval. */
const INTERVAL_MS = 60_000;
const MAX_SAMPLES = 240;
/** Graphs of so many nodes and pods take 21 MB. The others have none until one of these is gone. */
const MAX_NODES = 1_000;
const MAX_PODS = 10_000;
const UNKNOWN: Sample = { cpuMilli: Number.NaN, memoryBytes: Number.NaN };

/** Keeps samples of what each node and pod used in the last hours. They are lost when the coordinator ends. */
export class UsageHistory {
  readonly #options: UsageHistoryOptions;
  /** Keyed by name. */
  readonly #nodes = new Map<string, Ring>();
  /** Keyed by uid, so that a pod that has another one's name begins its own graph. */
  readonly #pods = new Map<string, Ring>();
  #cancel = (): void => {};

  constructor(options: UsageHistoryOptions) {
    this.#options = options;
    this.#later();
  }

  /** The memory of all samples. */
  get bytes(): number {
    return [...this.#nodes.values(), ...this.#pods.values()].reduce((sum, ring) => sum + ring.byteLength, 0);
  }

  /** Returns the samples of a node. There are none before its first heartbeats, and beyond the limit of graphs. */
  node(name: string): PresentView<UsageSeries> {
    const node = this.#options.state.node(name);
    return this.#view(this.#nodes.get(name), node && sampleOf(nodeUsage(node.health)));
  }

  /** Returns the samples of a pod. There are none before it runs, and beyond the limit of graphs. */
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
      this.#take();
      this.#later();
    });
  }

  #take(): void {
    const { state, clock, usage, maxNodes = MAX_NODES, maxPods = MAX_PODS } = this.#options;
    const nowMs = clock.nowMs();
    const nodes = state.nodes().map((node) => [node.name, sampleOf(nodeUsage(node.health))] as const);
    const pods = state.pods().map((pod) => [pod.record.uid, sampleOf(podUsage(state, pod, usage))] as const);
    takeEach(this.#nodes, nodes, { nowMs, maxRings: maxNodes });
    takeEach(this.#pods, pods, { nowMs, maxRings: maxPods });
  }
}

/** Adds a sample to each ring, and makes rings for what has its first value. Rings of what is gone are dropped first. */
function takeEach(
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
    ring.take(sample ?? UNKNOWN, nowMs);
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
