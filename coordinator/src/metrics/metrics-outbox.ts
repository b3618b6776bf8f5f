import { PodMetricsRequests } from "@forage/proto/forage/agent/v1/agent";
import type { MetricsDesk } from "./metrics-desk.ts";

/** What one session of a node was asked to measure, and so whether it is to be asked for something else. */
export class MetricsOutbox {
  readonly #desk: MetricsDesk;
  readonly #node: string;
  #asked: Buffer | undefined;

  constructor(desk: MetricsDesk, node: string) {
    this.#desk = desk;
    this.#node = node;
  }

  /** All that is wanted now, if that has changed. A node that was never asked for anything isn't told that nothing is wanted. */
  due(): PodMetricsRequests | undefined {
    const wanted = this.#desk.requestsFor(this.#node);
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
