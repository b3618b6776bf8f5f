import type { Log } from "@forage/common/log";
import type { KeptPodRecord, WorkloadStatusRecord } from "@forage/proto/forage/store/v1/store";
import { batches, type StoreWrite } from "../../model/batches.ts";
import { workloadStatusKey } from "../../model/keys.ts";
import { workloadKey } from "../../model/workload.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Change } from "../../state/entries.ts";
import type { RecordEntry } from "../../state/record-view.ts";
import type { Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import { Loop } from "../loop.ts";
import { joined, tryWrite } from "../write.ts";
import { planKeptPods } from "./plan.ts";

export interface KeptPodsOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly log: Log;
}

/** Removes the records of kept pods after their time, or when their workload's next rollout attempt starts. */
export class KeptPodsController {
  readonly #options: KeptPodsOptions;
  readonly #loop: Loop;

  constructor(options: KeptPodsOptions) {
    const { state, clock, log } = options;
    this.#options = options;
    this.#loop = new Loop({
      name: "kept-pods",
      reconcile: (key) => this.#reconcile(key),
      clock,
      log,
      state,
      wakeFor: (changes) => this.#wakeFor(changes),
    });
    for (const { record } of state.keptPods.all()) this.#wakeForPod(record);
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  #wakeFor(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.type === "kept-pod" && change.after !== undefined) this.#wakeForPod(change.after.record);
      if (change.type === "workload-status") this.#wakeForStatus((change.after ?? change.before)?.record);
    }
  }

  #wakeForPod({ pod }: KeptPodRecord): void {
    if (pod !== undefined) this.#loop.wake(workloadKey(pod.namespace, pod.workloadKind, pod.workloadName));
  }

  #wakeForStatus(status: WorkloadStatusRecord | undefined): void {
    if (status === undefined) return;
    const key = workloadKey(status.namespace, status.kind, status.name);
    if (this.#keptOf(key).length > 0) this.#loop.wake(key);
  }

  #keptOf(key: string): RecordEntry<KeptPodRecord>[] {
    return this.#options.state.keptPods.group(`workload:${key}`);
  }

  async #reconcile(key: string): Promise<number | undefined> {
    const { state, clock } = this.#options;
    const [namespace = "", kind = "", name = ""] = key.split("/");
    const status = state.workloadStatuses.get(workloadStatusKey(namespace, kind, name))?.record.status;
    const attemptStartedAt =
      status?.$case === "containerService" ? status.value.attempt?.startedAt : undefined;
    const nowMs = clock.nowMs();
    const { remove, nextMs } = planKeptPods({ kept: this.#keptOf(key), attemptStartedAt, nowMs });
    const writes = remove.map(
      (entry): StoreWrite => ({
        compares: [{ type: "mod-revision", key: entry.key, revision: entry.revision }],
        ops: [{ type: "delete", key: entry.key }],
      }),
    );
    for (const part of batches(writes)) {
      await tryWrite(joined(part), this.#options);
    }
    return nextMs === undefined ? undefined : nextMs - nowMs;
  }
}
