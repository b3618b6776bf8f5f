import type { NodeTaint } from "@forage/proto/forage/store/v1/store";
import { toEpochMs, toTimestamp } from "../../model/timestamp.ts";
import type { Clock } from "../../time/clock.ts";

interface Age {
  /** The monotonic time at which this process first saw the taint. */
  readonly seenMs: number;
  /** The taint's age by the wall clock when it was first seen. */
  readonly beforeMs: number;
}

/**
 * Tracks the ages of taints. Records hold wall-clock times, which are compared only once, when a taint is first seen.
 * Afterwards the monotonic clock counts, so that a change of the wall clock neither triggers an eviction nor prevents one.
 */
export class TaintAges {
  readonly #clock: Pick<Clock, "nowMs" | "monotonicMs">;
  readonly #ages = new Map<string, Map<string, Age>>();

  constructor(clock: Pick<Clock, "nowMs" | "monotonicMs">) {
    this.#clock = clock;
  }

  /**
   * Returns the node's taints with `addedAt` set to the current wall-clock time minus their age. The age of taints with
   * `key` is limited to `atMostMs`. Forgets taints that the node no longer has.
   */
  aged(
    node: string,
    taints: readonly NodeTaint[],
    limit: { readonly key: string; readonly atMostMs: number },
  ): NodeTaint[] {
    const known = this.#ages.get(node);
    const ages = new Map<string, Age>();
    const aged = taints.map((taint) => {
      const id = `${taint.key} ${taint.effect} ${toEpochMs(taint.addedAt) ?? 0}`;
      const age = known?.get(id) ?? this.#firstSight(taint);
      ages.set(id, age);
      const ageMs = age.beforeMs + this.#clock.monotonicMs() - age.seenMs;
      const countedMs = taint.key === limit.key ? Math.min(ageMs, limit.atMostMs) : ageMs;
      return { ...taint, addedAt: toTimestamp(this.#clock.nowMs() - countedMs) };
    });
    if (ages.size > 0) this.#ages.set(node, ages);
    else this.#ages.delete(node);
    return aged;
  }

  forget(node: string): void {
    this.#ages.delete(node);
  }

  #firstSight({ addedAt }: NodeTaint): Age {
    const nowMs = this.#clock.nowMs();
    return {
      seenMs: this.#clock.monotonicMs(),
      beforeMs: Math.max(0, nowMs - (toEpochMs(addedAt) ?? nowMs)),
    };
  }
}
