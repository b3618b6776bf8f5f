import { PodMetricsRequests } from "@forage/proto/forage/agent/v1/agent";
import type { MetricsCollector } from "./metrics-collector.ts";

/** Tracks the requests sent in one session of a node, and so whether a new request is due. */
export class MetricsOutbox {
  readonly #collector: MetricsCollector;
  readonly #node: string;
  #asked: Buffer | undefined;

  constructor(collector: MetricsCollector, node: string) {
    this.#collector = collector;
    this.#node = node;
  }

  /** Returns the present requests if they changed since the last message. A node that never got a request gets no empty one. */
  due(): PodMetricsRequests | undefined {
    const wanted = this.#collector.requestsFor(this.#node);
    if (wanted === undefined) {
      if (this.#asked === undefined) return undefined;
      this.#asked = undefined;
      return { pods: [], intervalMs: 0 };
    }
    const bytes = Buffer.from(PodMetricsRequests.encode(wanted).finish());
    if (this.#asked?.equals(bytes)) return undefined;
    this.#asked = bytes;
    return wanted;
  }
}
