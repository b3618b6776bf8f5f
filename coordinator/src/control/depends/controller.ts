import type { Log } from "@forage/common/log";
import { WorkloadStatusRecord } from "@forage/proto/forage/store/v1/store";
import { encodeRecord } from "../../model/codec.ts";
import { dependenciesOf, hasDependencies } from "../../model/depends-on.ts";
import type { EventRecorder } from "../../model/event.ts";
import { resourceKey, workloadStatusKey } from "../../model/keys.ts";
import { workloadKey } from "../../model/workload.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Change, PodEntry } from "../../state/entries.ts";
import type { Compare, Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import { Loop } from "../loop.ts";
import { write } from "../write.ts";
import { waitsFor } from "./waits-for.ts";

export interface DependsControllerOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventRecorder;
}

/** Records when all dependencies of a workload are met. They are not checked again for that generation. */
export class DependsController {
  readonly #options: DependsControllerOptions;
  readonly #loop: Loop;

  constructor(options: DependsControllerOptions) {
    this.#options = options;
    this.#loop = new Loop({
      name: "depends",
      reconcile: (key) => this.#reconcile(key),
      clock: options.clock,
      log: options.log,
      state: options.state,
      wakeFor: (changes) => this.#wakeFor(changes),
    });
    for (const { record } of options.state.resources()) {
      if (dependenciesOf(record).length > 0)
        this.#loop.wake(workloadKey(record.namespace, record.kind, record.name));
    }
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  #wakeFor(changes: readonly Change[]): void {
    const { state } = this.#options;
    for (const change of changes) {
      if (change.type === "pod")
        this.#wakeDependents(((change.after ?? change.before) as PodEntry).workloadKey);
      if (change.type === "resource" || change.type === "workload-status") {
        const record = (change.after ?? change.before)?.record;
        if (record === undefined) continue;
        const key = workloadKey(record.namespace, record.kind, record.name);
        this.#wakeDependents(key);
        if (
          change.type === "resource" &&
          change.after !== undefined &&
          dependenciesOf(change.after.record).length > 0
        )
          this.#loop.wake(key);
      }
      if (change.type === "node" && change.before?.health.ready !== change.after?.health.ready) {
        const name = (change.after ?? change.before)?.name ?? "";
        for (const pod of state.podsOnNode(name)) this.#wakeDependents(pod.workloadKey);
      }
    }
  }

  #wakeDependents(key: string): void {
    for (const { record } of this.#options.state.resourcesNeeding(key))
      this.#loop.wake(workloadKey(record.namespace, record.kind, record.name));
  }

  async #reconcile(key: string): Promise<undefined> {
    const { state, events, log } = this.#options;
    const [namespace = "", kind = "", name = ""] = key.split("/");
    const resource = state.resource(resourceKey(namespace, kind, name));
    const statusKey = workloadStatusKey(namespace, kind, name);
    const entry = state.workloadStatuses.get(statusKey);
    // The runs of a cron job wait for dependencies, not the cron job itself.
    if (resource === undefined || resource.record.deleting || kind === "cron_job") return undefined;
    if (!hasDependencies(resource.record, entry?.record) || waitsFor(resource, state).length > 0)
      return undefined;
    const base = entry?.record ?? WorkloadStatusRecord.fromPartial({ namespace, kind, name });
    const record: WorkloadStatusRecord = { ...base, dependenciesMet: resource.record.generation };
    const compares: Compare[] = [
      { type: "mod-revision", key: resource.key, revision: resource.revision },
      { type: "mod-revision", key: statusKey, revision: entry?.revision ?? 0 },
    ];
    const value = encodeRecord(WorkloadStatusRecord, record);
    await write({ compares, ops: [{ type: "put", key: statusKey, value }] }, this.#options);
    const names = dependenciesOf(resource.record).map((one) => `${one.kind}/${one.name}`);
    log.info({ event: "dependencies-satisfied", workload: key, dependencies: names });
    const message = `all dependencies are met: ${names.join(", ")}`;
    events.record({
      namespace,
      kind,
      name,
      type: "Normal",
      reason: "DependenciesMet",
      message,
      workload: key,
    });
    return undefined;
  }
}
