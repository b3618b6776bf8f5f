import { PodRecord } from "@forage/proto/forage/store/v1/store";
import type { Logger } from "pino";
import { batches, type Piece } from "../../model/batches.ts";
import { encodeRecord } from "../../model/codec.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { Change, PodEntry } from "../../state/entries.ts";
import type { State } from "../../state/state.ts";
import type { Store } from "../../store/index.ts";
import type { Clock } from "../clock.ts";
import { Loop } from "../loop.ts";
import { type Eviction, evictionOf } from "./eviction-of.ts";

export interface EvictionControllerOptions {
  readonly store: Store;
  readonly state: State;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Timers take at most 24 days. */
const longestWaitMs = 86_400_000;

/** Stops pods that don't tolerate a NoExecute taint of their node, or not for longer. Their workloads replace them. */
export class EvictionController {
  readonly #options: EvictionControllerOptions;
  readonly #loop: Loop;
  readonly #unsubscribe: () => void;

  constructor(options: EvictionControllerOptions) {
    this.#options = options;
    this.#loop = new Loop({
      name: "eviction",
      reconcile: (node) => this.#reconcile(node),
      clock: options.clock,
      log: options.log,
    });
    this.#unsubscribe = options.state.subscribe((changes) => this.#wakeFor(changes));
    for (const { name } of options.state.nodes()) this.#loop.wake(name);
  }

  async close(): Promise<void> {
    this.#unsubscribe();
    await this.#loop.close();
  }

  #wakeFor(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.kind === "node" && change.before?.record.taints !== change.after?.record.taints)
        this.#loop.wake((change.after ?? change.before)?.name ?? "");
      if (change.kind !== "pod" || change.after === undefined) continue;
      const { node } = change.after.record;
      if (this.#options.state.node(node)?.record.taints.length) this.#loop.wake(node);
    }
  }

  async #reconcile(name: string): Promise<number | undefined> {
    const { state, clock, log } = this.#options;
    const taints = state.node(name)?.record.taints ?? [];
    if (taints.length === 0) return undefined;
    const nowMs = clock.nowMs();
    const pieces: Piece[] = [];
    let nextMs = Number.POSITIVE_INFINITY;
    for (const pod of state.podsOnNode(name)) {
      if (pod.record.stoppingSince !== undefined) continue;
      const eviction = evictionOf(pod.record, taints);
      if (eviction === undefined) continue;
      nextMs = Math.min(nextMs, eviction.atMs);
      if (eviction.atMs > nowMs) continue;
      log.info({ pod: pod.record.name, node: name, taint: eviction.taint.key }, "pod evicted");
      pieces.push(stop(pod, eviction, nowMs));
    }
    await this.#write(pieces);
    return nextMs === Number.POSITIVE_INFINITY
      ? undefined
      : Math.min(longestWaitMs, Math.max(0, nextMs - nowMs));
  }

  async #write(pieces: readonly Piece[]): Promise<void> {
    for (const part of batches(pieces)) {
      const result = await this.#options.store.txn(
        part.flatMap(({ compares }) => compares),
        part.flatMap(({ ops }) => ops),
      );
      // Where something changed meanwhile, that change has woken the loop again.
      await this.#options.state.reached(result.revision);
    }
  }
}

function stop({ key, revision, record }: PodEntry, { taint }: Eviction, nowMs: number): Piece {
  const value = taint.value === "" ? "" : `=${taint.value}`;
  const stopped = {
    ...record,
    stoppingSince: toTimestamp(nowMs),
    stopReason: `its node has the taint ${taint.key}${value}:${taint.effect}`,
  };
  return {
    compares: [{ kind: "modRevision", key, revision }],
    ops: [{ kind: "put", key, value: encodeRecord(PodRecord, stopped) }],
  };
}
