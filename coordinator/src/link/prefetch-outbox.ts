import { createHash } from "node:crypto";
import { ImagePrefetches } from "@forage/proto/forage/agent/v1/agent";
import type { Prefetches } from "./prefetches.ts";

/** Tracks the requests for images sent in one session of a node, and so whether a new request is due. */
export class PrefetchOutbox {
  readonly #prefetches: Prefetches;
  readonly #node: string;
  /** A digest, since there are logins in it; undefined: nothing. */
  #asked: string | undefined;

  constructor(prefetches: Prefetches, node: string) {
    this.#prefetches = prefetches;
    this.#node = node;
  }

  /** Returns the present requests if they changed since the last message. A node that never got a request gets no empty one. */
  due(): ImagePrefetches | undefined {
    const wanted = this.#prefetches.requestsFor(this.#node);
    const digest =
      wanted.images.length === 0
        ? undefined
        : createHash("sha256").update(ImagePrefetches.encode(wanted).finish()).digest("hex");
    if (digest === this.#asked) return undefined;
    this.#asked = digest;
    return wanted;
  }
}
