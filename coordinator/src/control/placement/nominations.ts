import { type Fleet, podKey as fleetKey, type PodSpec } from "@forage/scheduler";
import type { StoreWrite } from "../../model/batches.ts";
import { encodePod } from "../../model/codec.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { PodEntry } from "../../state/entries.ts";

interface Nomination {
  readonly node: string;
  readonly victims: readonly PodEntry[];
}

export interface NominationsOptions {
  readonly fleet: Fleet;
  readonly state: ClusterView;
  readonly nowMs: () => number;
}

/** A preemption that makes room for a pod. */
export interface PreemptionPlan {
  readonly message: string;
  /** Less important pods to stop now. Empty while earlier victims are still stopping. */
  readonly stops: readonly { readonly key: string; readonly write: StoreWrite }[];
}

/**
 * Tracks the pods for which victims are being stopped. Until the victims are gone, such a pod reserves its place in the
 * scheduler's fleet, so that no less important pod uses the freed room.
 */
export class Nominations {
  readonly #options: NominationsOptions;
  /** The nominations by uid of the waiting pod. */
  readonly #nominations = new Map<string, Nomination>();
  /** The uids of waiting pods by uid of their victim. */
  readonly #waitingFor = new Map<string, Set<string>>();

  constructor(options: NominationsOptions) {
    this.#options = options;
  }

  /** Returns the node on which the pod reserves a place. */
  nodeFor(uid: string): string | undefined {
    return this.#nominations.get(uid)?.node;
  }

  /** Returns the uids of pods that reserve a place on the node. */
  on(node: string): string[] {
    return [...this.#nominations].flatMap(([uid, nomination]) => (nomination.node === node ? [uid] : []));
  }

  /** Returns the uids of pods that wait until this one is gone. */
  waitingFor(victimUid: string): readonly string[] {
    return [...(this.#waitingFor.get(victimUid) ?? [])];
  }

  /** Releases the pod's reservation. Must be called before the pod is scheduled again. */
  release({ record }: PodEntry): void {
    if (this.#nominations.has(record.uid)) this.#options.fleet.unbind(fleetKey(record));
  }

  forget(uid: string): void {
    for (const { record } of this.#nominations.get(uid)?.victims ?? []) {
      const waiting = this.#waitingFor.get(record.uid);
      waiting?.delete(uid);
      if (waiting?.size === 0) this.#waitingFor.delete(record.uid);
    }
    this.#nominations.delete(uid);
  }

  /** Tries to make room for an unschedulable pod by preempting less important pods. */
  preempt(pod: PodEntry, spec: PodSpec): PreemptionPlan | undefined {
    const { fleet, state } = this.#options;
    const before = this.#nominations.get(pod.record.uid);
    const left = (before?.victims ?? []).filter((victim) => isStopping(victim, state));
    if (before !== undefined && left.length > 0 && state.node(before.node) !== undefined) {
      fleet.bind(spec, before.node);
      return { message: waitingFor(left, before.node), stops: [] };
    }
    this.forget(pod.record.uid);
    const { priority = 0, preemptionPolicy } = spec;
    if (preemptionPolicy === "Never" || !fleet.hasPodsBelow(priority)) return undefined;
    const found = fleet.preempt(spec);
    if (found === undefined) return undefined;
    const byKey = new Map(state.podsOnNode(found.node).map((it) => [fleetKey(it.record) as string, it]));
    const victims = found.victims.map((key) => byKey.get(key)).filter((it) => it !== undefined);
    // A victim that only reserves a place can't be stopped.
    if (victims.length < found.victims.length) return undefined;
    this.#nominate(pod.record.uid, { node: found.node, victims });
    fleet.bind(spec, found.node);
    const running = victims.filter(({ record }) => record.stoppingSince === undefined);
    return {
      message: waitingFor(victims, found.node),
      stops: running.map((victim) => ({ key: victim.key, write: this.#stop(victim, pod) })),
    };
  }

  #nominate(uid: string, nomination: Nomination): void {
    this.#nominations.set(uid, nomination);
    for (const { record } of nomination.victims) {
      const waiting = this.#waitingFor.get(record.uid) ?? new Set();
      this.#waitingFor.set(record.uid, waiting.add(uid));
    }
  }

  #stop({ key, revision, record }: PodEntry, by: PodEntry): StoreWrite {
    const stopped = {
      ...record,
      stoppingSince: toTimestamp(this.#options.nowMs()),
      stopReason: `Preempted by ${by.record.namespace}/${by.record.name}`,
    };
    return {
      compares: [{ type: "mod-revision", key, revision }],
      ops: [{ type: "put", key, value: encodePod(stopped) }],
    };
  }
}

function isStopping({ record }: PodEntry, state: ClusterView): boolean {
  return state.podByUid(record.uid)?.record.stoppingSince !== undefined;
}

function waitingFor(victims: readonly PodEntry[], node: string): string {
  const names = victims.slice(0, 3).map(({ record }) => record.name);
  const more = victims.length > names.length ? ` and ${victims.length - names.length} more` : "";
  return `waits for room on node ${node}: less important pods are being stopped (${names.join(", ")}${more})`;
}
