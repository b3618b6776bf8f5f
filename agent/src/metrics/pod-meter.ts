import { withLinkedSignal } from "@forage/common/link-signals";
import { messageOf } from "@forage/common/message-of";
import type {
  PodMetrics,
  PodMetricsRequest,
  PodMetricsRequests,
  PodMetricsSample,
} from "@forage/proto/forage/agent/v1/agent";
import { type Clock, pause } from "../clock.ts";
import type { PodStatus } from "../pods/decide/pod-status.ts";
import type { ContainerUsage } from "../runtime/runtime.ts";
import { type CounterReading, metricValues } from "./counter-rates.ts";
import { measureUsage, type UsageReading } from "./measure-usage.ts";
import { parseExposition } from "./parse-exposition.ts";
import { hasChanged, LEFT_OUT_MAX } from "./sample-change.ts";
import type { Scrape } from "./scrape.ts";

export interface PodMeterOptions {
  readonly clock: Clock;
  /** The pods of the host. */
  readonly pods: {
    statusOf(podUid: string): PodStatus | undefined;
    statuses(): readonly PodStatus[];
  };
  /** Returns the usage of a container. Undefined if it isn't running. */
  readonly usage: (containerId: string) => Promise<ContainerUsage | undefined>;
  readonly scrape: Scrape;
}

/** Receives samples. A slow receiver delays the next round. */
export interface SampleSink {
  send(message: { readonly $case: "podMetrics"; readonly value: PodMetrics }): Promise<void>;
}

/** A recorded time and its equivalent by the monotonic clock, because the wall clock may be set meanwhile. */
interface SeenTime {
  readonly atMs: number;
  readonly monotonicMs: number;
}

interface Measured {
  readonly usage?: UsageReading;
  readonly counters?: CounterReading;
  readonly running?: SeenTime | undefined;
  readonly ready?: SeenTime | undefined;
  /** The last sent sample of a pod that no request names, and the number of similar samples omitted since. */
  readonly sent?: { readonly sample: PodMetricsSample; readonly leftOut: number };
}

const INTERVAL_MS = 15_000;
const INTERVAL_MIN_MS = 1_000;
const INTERVAL_MAX_MS = 300_000;
const SCRAPE_TIMEOUT_MS = 5_000;
const SCRAPES_AT_ONCE = 8;
// More than the pods of a host.
const PODS_MAX = 1_000;
const PROBLEM_MAX = 300;

/** Measures the pods that the coordinator requests while it is connected. Without requests nothing runs. */
export class PodMeter {
  readonly #options: PodMeterOptions;
  readonly #measured = new Map<string, Measured>();
  #requests: readonly PodMetricsRequest[] = [];
  #isForAll = false;
  #intervalMs = INTERVAL_MS;
  #sink: SampleSink | undefined;
  #stop: AbortController | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(options: PodMeterOptions) {
    this.#options = options;
  }

  /** Replaces earlier requests, whichever connection they came from. */
  ask({ pods, intervalMs, usageOfAllPods }: PodMetricsRequests, sink: SampleSink): void {
    this.#requests = pods.slice(0, PODS_MAX);
    this.#isForAll = usageOfAllPods;
    this.#intervalMs = Math.min(INTERVAL_MAX_MS, Math.max(INTERVAL_MIN_MS, intervalMs || INTERVAL_MS));
    this.#sink = sink;
    this.#forgetOthers(this.#due());
    if (this.#requests.length === 0 && !this.#isForAll) this.#end();
    else if (this.#stop === undefined) this.#begin();
  }

  /** Drops the requests of a closed connection. The next one sends new requests. */
  ended(sink: SampleSink): void {
    if (this.#sink === sink) this.ask({ pods: [], intervalMs: 0, usageOfAllPods: false }, sink);
  }

  async close(): Promise<void> {
    this.#end();
    await this.#running;
  }

  #begin(): void {
    const stop = new AbortController();
    this.#stop = stop;
    this.#running = Promise.all([this.#running, this.#run(stop.signal)]).then(() => undefined);
  }

  #end(): void {
    this.#stop?.abort();
    this.#stop = undefined;
    this.#sink = undefined;
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const samples = await this.#round(signal);
      if (signal.aborted) return;
      if (samples.length > 0) await this.#sink?.send({ $case: "podMetrics", value: { pods: samples } });
      await pause(this.#options.clock, this.#intervalMs, signal);
    }
  }

  async #round(signal: AbortSignal): Promise<PodMetricsSample[]> {
    const samples: PodMetricsSample[] = [];
    const named = new Set(this.#requests.map(({ podUid }) => podUid));
    const queue = this.#due();
    this.#forgetOthers(queue);
    const work = async (): Promise<void> => {
      for (let next = queue.shift(); next !== undefined && !signal.aborted; next = queue.shift()) {
        const sample = await this.#sample(next, signal);
        if (sample !== undefined && (named.has(next.podUid) || this.#isChange(sample))) samples.push(sample);
      }
    };
    await Promise.all(Array.from({ length: SCRAPES_AT_ONCE }, work));
    return samples;
  }

  /**
   * Returns the pods to measure in this round: those that requests name, and with a request for all pods also the
   * others.
   */
  #due(): PodMetricsRequest[] {
    if (!this.#isForAll) return [...this.#requests];
    const named = new Set(this.#requests.map(({ podUid }) => podUid));
    const others = this.#options.pods.statuses().filter(({ uid }) => !named.has(uid));
    const usageOnly = others.map(({ uid }) => ({ podUid: uid, usage: true, scrape: undefined }));
    return [...this.#requests, ...usageOnly].slice(0, PODS_MAX);
  }

  #forgetOthers(due: readonly PodMetricsRequest[]): void {
    const uids = new Set(due.map(({ podUid }) => podUid));
    for (const uid of this.#measured.keys()) if (!uids.has(uid)) this.#measured.delete(uid);
  }

  /** Reports whether to send the sample of a pod that no request names, and records the decision. */
  #isChange(sample: PodMetricsSample): boolean {
    const measured = this.#measured.get(sample.podUid);
    const { sent } = measured ?? {};
    const isNews = sent === undefined || sent.leftOut >= LEFT_OUT_MAX || hasChanged(sent.sample, sample);
    const next =
      isNews || sent === undefined ? { sample, leftOut: 0 } : { ...sent, leftOut: sent.leftOut + 1 };
    this.#measured.set(sample.podUid, { ...measured, sent: next });
    return isNews;
  }

  async #sample(request: PodMetricsRequest, signal: AbortSignal): Promise<PodMetricsSample | undefined> {
    const { podUid, usage, scrape } = request;
    const { clock, pods, usage: readUsage } = this.#options;
    const status = pods.statusOf(podUid);
    if (status?.phase !== "RUNNING") {
      this.#measured.delete(podUid);
      return undefined;
    }
    const before = this.#measured.get(podUid) ?? {};
    const used = usage ? await measureUsage(status, before.usage, clock, readUsage) : undefined;
    const scraped = scrape && (await this.#scrape(scrape, status.podIp, before.counters, signal));
    if (signal.aborted) return undefined;
    const running = seenTime(before.running, status.startedAtMs, clock);
    const ready = seenTime(before.ready, status.ready ? status.readyAtMs : undefined, clock);
    this.#measured.set(podUid, {
      ...{ running, ready },
      ...(before.sent !== undefined && { sent: before.sent }),
      ...(used !== undefined && { usage: used.reading }),
      ...(scraped !== undefined && { counters: scraped.counters ?? before.counters }),
    });
    return {
      podUid,
      cpuNanoCores: used?.rate && BigInt(used.rate.nanoCores),
      windowMs: BigInt(Math.round(used?.rate?.windowMs ?? 0)),
      memoryBytes: used?.memoryBytes === undefined ? undefined : BigInt(used.memoryBytes),
      values: { ...scraped?.values },
      problem: (scraped?.problem ?? "").slice(0, PROBLEM_MAX),
      runningMs: ageMs(running, clock),
      readyMs: ageMs(ready, clock),
    };
  }

  async #scrape(
    { port, path, scheme, names }: NonNullable<PodMetricsRequest["scrape"]>,
    address: string,
    before: CounterReading | undefined,
    signal: AbortSignal,
  ): Promise<ScrapeResult> {
    const { clock, scrape } = this.#options;
    if (address === "") return { values: {}, problem: "the pod has no address yet" };
    const late = new AbortController();
    const cancel = clock.schedule(SCRAPE_TIMEOUT_MS, () => late.abort());
    try {
      const from = { address, port, path, scheme: scheme === "https" ? "https" : "http" } as const;
      const text = await withLinkedSignal([signal, late.signal], (either) => scrape(from, either));
      return metricValues(names, parseExposition(text, names), before, clock.monotonicMs());
    } catch (error) {
      const why = late.signal.aborted ? `no answer within ${SCRAPE_TIMEOUT_MS / 1000} s` : messageOf(error);
      return { values: {}, problem: `${scheme || "http"}://${address}:${port}${path}: ${why}` };
    } finally {
      cancel();
    }
  }
}

interface ScrapeResult {
  readonly values: Readonly<Record<string, number>>;
  readonly problem: string;
  /** Counters of the previous reading. Undefined: unchanged. */
  readonly counters?: CounterReading;
}

/**
 * Returns the time in both clocks. A time in the future was recorded before the clock was set back; it is replaced by
 * the time when it is first seen.
 */
function seenTime(
  before: SeenTime | undefined,
  atMs: number | undefined,
  clock: Clock,
): SeenTime | undefined {
  if (atMs === undefined || before?.atMs === atMs) return atMs === undefined ? undefined : before;
  return { atMs, monotonicMs: clock.monotonicMs() - Math.max(0, clock.nowMs() - atMs) };
}

/** Returns the age in milliseconds, or zero for an unknown time. */
function ageMs(seen: SeenTime | undefined, clock: Clock): bigint {
  return BigInt(seen === undefined ? 0 : Math.max(1, Math.round(clock.monotonicMs() - seen.monotonicMs)));
}
