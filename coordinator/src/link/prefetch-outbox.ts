import { createHash } from "node:crypto";
import { ImagePrefetches } from "@forage/proto/forage/agent/v1/agent";
import type { Prefetches } from "./prefetches.ts";

/** What one session of a node was asked to pull, and so whether it is to be asked for something else. */
export class PrefetchOutbox {
  readonly #prefetches: Prefetches;
  readonly #node: string;
  /** A digest, since there are logins in it; undefined: nothing. */
  #asked: string | undefined;

  constructor(prefetches: Prefetches, node: string) {
    this.#prefetches = prefetches;
    this.#node = node;
  }

  /** All that is wanted now, if that has changed. A node that was never asked for anything isn't told that nothing is wanted. */
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
