import { PodPhase } from "@forage/proto/forage/agent/v1/agent";
import { parseAmount, podRequests } from "@forage/scheduler";
import { isTerminal } from "../../coordinator/src/control/rollout/progress.ts";
import { resourceKey } from "../../coordinator/src/model/keys.ts";
import { podSpecOf } from "../../coordinator/src/model/pod-spec.ts";
import { ClusterView } from "../../coordinator/src/state/cluster-view.ts";
import type { Change, PodEntry, RolloutEntry } from "../../coordinator/src/state/entries.ts";
import type { WatchBatch } from "../../coordinator/src/store/index.ts";
import { CronRules } from "./cron-rules.ts";
import { JobRules } from "./job-rules.ts";
import { rollingLimitsOf } from "./rolling-limits.ts";
import type { Blame } from "./violation.ts";

/** Rules for the stored records, checked at each revision. */
export class StoreRules {
  /** The durable records, whether or not the coordinator has read them. */
  readonly state = new ClusterView();
  readonly jobs: JobRules;
  readonly cron: CronRules;
  readonly #blame: Blame;
  readonly #uids = new Map<string, string>();
  /** Pods that were ever to leave their nodes. */
  readonly #drained = new Set<string>();

  constructor(blame: Blame) {
    this.#blame = blame;
    this.jobs = new JobRules(this.state, blame);
    this.cron = new CronRules(this.state, blame);
    this.state.subscribe((changes) => {
      this.#check(changes);
      this.jobs.check(changes);
      this.cron.check(changes);
    });
  }

  apply({ events, revision }: WatchBatch): void {
    this.state.apply(events, revision);
  }

  #check(changes: readonly Change[]): void {
    const grown = new Set<string>();
    const filled = new Set<string>();
    for (const change of changes) {
      if (change.type === "rollout") this.#checkRollout(change.before, change.after);
      if (change.type !== "pod") continue;
      const { before, after } = change;
      if (after?.record.drainingSince !== undefined) this.#drained.add(after.record.uid);
      if (before === undefined && after !== undefined) {
        this.#checkNew(after);
        grown.add(after.workloadKey);
      }
      if (before !== undefined && after !== undefined) this.#checkChanged(before, after);
      if (before !== undefined && after === undefined) this.#checkGone(before);
      if (after !== undefined && after.record.node !== "" && (before?.record.node ?? "") === "")
        filled.add(after.record.node);
    }
    for (const key of grown) this.#checkSurge(key);
    for (const node of filled) this.#checkRoom(node);
  }

  #checkNew({ record }: PodEntry): void {
    const { uid, name } = record;
    const known = this.#uids.get(uid);
    if (known !== undefined) this.#blame(`pod ${name} has the uid ${uid} that ${known} had`);
    this.#uids.set(uid, name);
    if (record.node === "") return;
    if (record.workloadKind !== "container_service") this.#blame(`pod ${name} came into being on a node`);
    if (record.boundAt === undefined) this.#blame(`pod ${name} was bound at no time`);
  }

  #checkChanged({ record: before }: PodEntry, { record: after }: PodEntry): void {
    const { name } = before;
    if (before.uid !== after.uid) this.#blame(`pod ${name} became another one`);
    if (before.node !== "" && before.node !== after.node)
      this.#blame(`pod ${name} moved from ${before.node} to ${after.node || "nowhere"}`);
    if (before.stoppingSince !== undefined && after.stoppingSince === undefined)
      this.#blame(`pod ${name} was to stop and is no more`);
    if (before.stoppingSince !== undefined && before.node === "" && after.node !== "")
      this.#blame(`pod ${name} was bound though it is to stop`);
    if (before.templateHash !== after.templateHash) this.#blame(`pod ${name} got another template`);
  }

  /** Checks that the record exists as long as any part of the pod may be on a node. */
  #checkGone(pod: PodEntry): void {
    const { node, name, stoppingSince } = pod.record;
    if (node === "" || this.state.node(node) === undefined) return;
    if (stoppingSince === undefined && !isOver(pod))
      this.#blame(`the record of pod ${name} is gone without an order to ${node} to stop it`);
  }

  /** Checks that all pods that aren't stopping, including new ones, are within the limits of the applied workload. */
  #checkSurge(key: string): void {
    const [namespace = "", kind = "", name = ""] = key.split("/");
    const resource = this.state.resource(resourceKey(namespace, kind, name));
    if (resource === undefined || resource.record.deleting) {
      this.#blame(`a pod was created for ${key}, which is deleted`);
      return;
    }
    const { workload } = resource;
    if (workload === undefined || kind !== "container_service") return;
    // A drained pod stays until a replacement is ready, also if the drain is cancelled meanwhile.
    const active = this.state
      .podsOfWorkload(key)
      .filter(({ record }) => record.stoppingSince === undefined && !this.#drained.has(record.uid));
    const most = rollingLimitsOf(workload)?.maxActive ?? workload.replicas;
    if (active.length > most) this.#blame(`${key} has ${active.length} active pods, at most ${most} may be`);
  }

  /** Checks the node's room by the requests of all pods that may have parts on it. */
  #checkRoom(name: string): void {
    const allocatable = this.state.node(name)?.report?.report?.allocatable ?? {};
    // A pod that has ended for good needs no room, also while its node cleans up after it.
    const pods = this.state.podsOnNode(name).filter((pod) => !usesNothing(pod));
    const used = new Map([["pods", pods.length]]);
    for (const { record } of pods) {
      for (const [resource, amount] of podRequests(podSpecOf(record)))
        used.set(resource, (used.get(resource) ?? 0) + amount);
    }
    for (const [resource, amount] of used) {
      const has = parseAmount(resource, allocatable[resource] ?? "0");
      if (amount > has) this.#blame(`node ${name} has ${has} of ${resource}, and its pods ask for ${amount}`);
    }
  }

  #checkRollout(before: RolloutEntry | undefined, after: RolloutEntry | undefined): void {
    if (before === undefined || after === undefined) return;
    if (before.record.finished && !after.record.finished)
      this.#blame(`rollout ${before.id} was finished and is no more`);
    for (const [index, target] of before.record.resources.entries()) {
      const now = after.record.resources[index];
      if (isTerminal(target.status) && now?.status !== target.status)
        this.#blame(`rollout ${before.id}: ${target.kind}/${target.name} had ended and has another end now`);
    }
  }
}

function isOver({ status }: PodEntry): boolean {
  return status?.phase === PodPhase.SUCCEEDED || status?.phase === PodPhase.FAILED;
}

/** Reports whether none of the pod's containers runs or will run. */
function usesNothing(pod: PodEntry): boolean {
  const { phase, containers = [] } = pod.status ?? {};
  if (phase === PodPhase.REMOVED) return true;
  if (phase !== PodPhase.STOPPING)
    return isOver(pod) && !containers.some(({ state }) => state?.$case === "running");
  return containers.length > 0 && containers.every(({ state }) => state?.$case === "terminated");
}
