import { PodMetricsRequests } from "@forage/proto/forage/agent/v1/agent";
import type { MetricsDesk } from "./metrics-desk.ts";

/** Tracks the requests sent in one session of a node, and so whether a new request is due. */
export class MetricsOutbox {
  readonly #desk: MetricsDesk;
  readonly #node: string;
  #asked: Buffer | undefined;

  constructor(desk: MetricsDesk, node: string) {
    this.#desk = desk;
    this.#node = node;
  }

  /** Returns the present requests if they changed since the last message. A node that never got a request gets no empty one. */
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
