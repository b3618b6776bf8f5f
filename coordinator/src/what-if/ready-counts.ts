import { isReady } from "../endpoints/readiness.ts";
import { splitWorkloadKey } from "../model/workload.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Change } from "../state/entries.ts";
import { serves } from "../state/serves.ts";

export interface ReadyCountsOptions {
  readonly state: ClusterView;
  /**
   * Nodes whose pods count as ended regardless of their stored status, from the first change on.
   */
  readonly lost: ReadonlySet<string>;
}

/** Tracks how many pods of each container service are ready, and records the lowest numbers. */
export class ReadyCounts {
  readonly #options: ReadyCountsOptions;
  readonly #before = new Map<string, number>();
  readonly #lowest = new Map<string, number>();
  readonly #unsubscribe: () => void;

  constructor(options: ReadyCountsOptions) {
    const { state } = options;
    this.#options = options;
    for (const { workloadKey } of state.pods())
      if (!this.#before.has(workloadKey) && isService(workloadKey))
        this.#before.set(workloadKey, this.#count(workloadKey, new Set()));
    for (const [key, count] of this.#before) this.#lowest.set(key, count);
    this.#unsubscribe = state.subscribe((changes) => this.#follow(changes));
  }

  /** Returns the keys of workloads that have or had pods since the beginning. */
  keys(): readonly string[] {
    return [...this.#lowest.keys()];
  }

  before(key: string): number {
    return this.#before.get(key) ?? 0;
  }

  lowest(key: string): number {
    return this.#lowest.get(key) ?? 0;
  }

  now(key: string): number {
    return this.#count(key, this.#options.lost);
  }

  close(): void {
    this.#unsubscribe();
  }

  #count(key: string, lost: ReadonlySet<string>): number {
    const { state } = this.#options;
    const nodeServes = (name: string): boolean => serves(state.node(name)) && !lost.has(name);
    return state.podsOfWorkload(key).filter((pod) => isReady(pod, nodeServes)).length;
  }

  #follow(changes: readonly Change[]): void {
    const touched = new Set<string>();
    for (const change of changes) {
      if (change.type === "pod") touched.add((change.after ?? change.before)?.workloadKey ?? "");
      if (change.type !== "node" || change.before?.health === change.after?.health) continue;
      const name = (change.after ?? change.before)?.name ?? "";
      for (const pod of this.#options.state.podsOnNode(name)) touched.add(pod.workloadKey);
    }
    for (const key of touched)
      if (isService(key)) this.#lowest.set(key, Math.min(this.now(key), this.#lowest.get(key) ?? 0));
  }
}

function isService(workload: string): boolean {
  return splitWorkloadKey(workload).kind === "container_service";
}
