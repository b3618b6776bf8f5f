import {
  KeptPodRecord,
  NamespaceRecord,
  NodeRecord,
  NodeStatusRecord,
  PodRecord,
  PodStatusRecord,
  ResourceRecord,
  RevisionRecord,
  RolloutRecord,
  ScaleRecord,
  ServiceAddressRecord,
  WorkloadStatusRecord,
} from "@forage/proto/forage/store/v1/store";
import { decodeRecord } from "../model/codec.ts";
import { objectKey, PREFIXES, podKey, resourceKey } from "../model/keys.ts";
import type { ObjectName } from "../model/object-name.ts";
import { workloadKey } from "../model/workload.ts";
import type { StoredRecord, WatchEvent } from "../store/index.ts";
import { applyToken } from "./api-tokens.ts";
import { derivedWorkload } from "./derived-workload.ts";
import type {
  ApiTokenEntry,
  Change,
  NodeEntry,
  NodeHealth,
  PodEntry,
  ResourceEntry,
  RolloutEntry,
} from "./entries.ts";
import { podGroups, resourceGroups, rolloutGroups, targetGroup, templateGroup } from "./groups.ts";
import { IndexMap } from "./index-map.ts";
import { keptPodGroups } from "./kept-pods.ts";
import { Listeners } from "./listeners.ts";
import { ObjectsView } from "./objects-view.ts";
import { statusOf } from "./pod-status.ts";
import { PodTemplates } from "./pod-templates.ts";
import { RecordView } from "./record-view.ts";
import { compareRollouts } from "./rollout-order.ts";
import type { StateOptions } from "./state-options.ts";
import { isDispensable } from "./unreadable.ts";

/**
 * Holds everything that the coordinator knows, in memory and indexed; all reads are served from here. Only the store's watch
 * (`apply`) and the nodes' health change it. Health is about the present and is not stored.
 */
export class ClusterView {
  readonly #resources = new IndexMap<ResourceEntry>(resourceGroups);
  readonly #pods = new IndexMap<PodEntry>(podGroups, ({ record }) => record.uid);
  readonly #statuses = new Map<string, PodStatusRecord>();
  readonly #nodes = new IndexMap<NodeEntry>();
  readonly #reports = new Map<string, NodeStatusRecord>();
  readonly #rollouts = new IndexMap<RolloutEntry>((r) => rolloutGroups(r.record));
  readonly podTemplates = new PodTemplates();
  /** Secrets, config maps and the like. */
  readonly objects = new ObjectsView();
  /**
   * Revisions by workload (the group `workload:KEY`) and by the objects that they are pinned to (`pin:NAMESPACE/KIND/NAME`).
   */
  readonly revisions = new RecordView<RevisionRecord>(RevisionRecord, (r) => [
    `workload:${workloadKey(r.namespace, r.kind, r.name)}`,
    ...Object.keys(r.objectVersions).map((name) => `pin:${r.namespace}/${name}`),
  ]);
  /** Failed pods that a rollback has stopped, by workload: the group `workload:KEY`; and by namespace: `ns:NAMESPACE`. */
  readonly keptPods = new RecordView<KeptPodRecord>(KeptPodRecord, keptPodGroups);
  readonly workloadStatuses = new RecordView<WorkloadStatusRecord>(WorkloadStatusRecord);
  readonly scales = new RecordView<ScaleRecord>(ScaleRecord);
  /** Policies and quotas of namespaces that have any. */
  readonly namespaces = new RecordView<NamespaceRecord>(NamespaceRecord);
  /** Addresses of services by address: the group `ip:ADDRESS`. */
  readonly serviceAddresses = new RecordView<ServiceAddressRecord>(ServiceAddressRecord, (r) =>
    [...r.virtualIps, ...r.loadBalancerIps].map((ip) => `ip:${ip}`),
  );
  readonly #tokens = new IndexMap<ApiTokenEntry>(() => []);
  readonly #listeners: Listeners;
  readonly #onUnreadable: ((key: string, error: unknown) => void) | undefined;
  #waiters: { readonly revision: number; readonly resolve: () => void }[] = [];
  #revision = 0;

  constructor(options: StateOptions = {}) {
    this.#listeners = new Listeners(options.onListenerError);
    this.#onUnreadable = options.onUnreadable;
  }

  /** The view contains everything up to this revision of the store. */
  get revision(): number {
    return this.#revision;
  }

  resource(key: string): ResourceEntry | undefined {
    return this.#resources.get(key);
  }

  resources(namespace?: string): ResourceEntry[] {
    return namespace === undefined ? this.#resources.values() : this.#resources.group(`ns:${namespace}`);
  }

  /** Workloads that refer to the object. */
  resourcesReferring(name: ObjectName): ResourceEntry[] {
    return this.#resources.group(`ref:${objectKey(name)}`);
  }

  /** Pods that refer to the object, wherever they are. */
  podsReferring(name: ObjectName): PodEntry[] {
    return this.#pods.group(`ref:${objectKey(name)}`);
  }

  /** Returns the resources that a resource owns, such as a cron job's runs. */
  resourcesOwnedBy(namespace: string, kind: string, name: string): ResourceEntry[] {
    return this.#resources.group(`owner:${namespace}/${kind}/${name}`);
  }

  /** Returns the resources that wait for the workload with the key `namespace/kind/name`. */
  resourcesNeeding(key: string): ResourceEntry[] {
    return this.#resources.group(`needs:${key}`);
  }

  /** Services whose target is the workload of the key `namespace/kind/name`. */
  servicesTargeting(key: string): ResourceEntry[] {
    return this.#resources.group(targetGroup(key));
  }

  pod(namespace: string, name: string): PodEntry | undefined {
    return this.#pods.get(podKey(namespace, name));
  }

  podByUid(uid: string): PodEntry | undefined {
    return this.#pods.byId(uid);
  }

  pods(namespace?: string): PodEntry[] {
    return namespace === undefined ? this.#pods.values() : this.#pods.group(`ns:${namespace}`);
  }

  podCountOf(workload: string): number {
    return this.#pods.groupSize(`workload:${workload}`);
  }

  podsOfWorkload(key: string): PodEntry[] {
    return this.#pods.group(`workload:${key}`);
  }

  /** Templates of the workload that no pod was made from, or none that is left. */
  unusedTemplates(key: string): { readonly key: string; readonly revision: number }[] {
    return this.podTemplates.ofWorkload(key).filter((it) => !this.#pods.hasGroup(templateGroup(it.key)));
  }

  podsOnNode(name: string): PodEntry[] {
    return this.#pods.group(`node:${name}`);
  }

  /** Pods, of one workload if it is given, that have no node yet and are not stopping. */
  unboundPods(workload?: string): PodEntry[] {
    return this.#pods.group(workload === undefined ? "unbound" : `unbound:${workload}`);
  }

  /** Pods, of one workload if it is given, that are to leave their nodes and have not been stopped yet. */
  drainingPods(workload?: string): PodEntry[] {
    return this.#pods.group(workload === undefined ? "draining" : `draining:${workload}`);
  }

  node(name: string): NodeEntry | undefined {
    return this.#nodes.get(name);
  }

  nodes(): NodeEntry[] {
    return this.#nodes.values();
  }

  rollout(id: string): RolloutEntry | undefined {
    return this.#rollouts.get(id);
  }

  rollouts(namespace?: string): RolloutEntry[] {
    return namespace === undefined ? this.#rollouts.values() : this.#rollouts.group(`ns:${namespace}`);
  }

  activeRollouts(): RolloutEntry[] {
    return this.#rollouts.group("active");
  }

  /** Rollouts that named the resource, oldest first. */
  rolloutsOf(namespace: string, kind: string, name: string): RolloutEntry[] {
    // The store holds them by their ids, so that after a start they come in any order.
    const found = this.#rollouts.group(`resource:${namespace}/${kind}/${name}`);
    return found.sort((a, b) => compareRollouts(a.record, b.record));
  }

  /** Rollouts that named the resource and have not finished, in any order. */
  activeRolloutsOf(namespace: string, kind: string, name: string): RolloutEntry[] {
    return this.#rollouts.group(`active:${namespace}/${kind}/${name}`);
  }

  apiToken(id: string): ApiTokenEntry | undefined {
    return this.#tokens.get(id);
  }

  apiTokens(): ApiTokenEntry[] {
    return this.#tokens.values();
  }

  /** Called after each change with all that one revision changed. Returns how to stop. */
  subscribe(listener: (changes: readonly Change[]) => void): () => void {
    return this.#listeners.add(listener);
  }

  /** Resolves once the view holds the revision: after its own write a caller waits here before it reads. */
  reached(revision: number): Promise<void> {
    if (this.#revision >= revision) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push({ revision, resolve }));
  }

  /** Takes over what the store held at the start. @throws the error of a record that can't be read and can't be done without. */
  load(records: readonly StoredRecord[], revision: number): void {
    const changes: Change[] = [];
    for (const record of records)
      this.#applyReadable({ kind: "put", record }, changes, isDispensable(record.key));
    this.#advance(revision, changes);
  }

  /** Keeps the last known state of a record if the new one can't be read. */
  apply(events: readonly WatchEvent[], revision: number): void {
    const changes: Change[] = [];
    for (const event of events) this.#applyReadable(event, changes, true);
    this.#advance(revision, changes);
  }

  setNodeHealth(name: string, health: NodeHealth, notify: boolean): void {
    const before = this.#nodes.get(name);
    if (before === undefined) return;
    const after = { ...before, health };
    this.#nodes.replace(name, after);
    if (notify) this.#publish([{ kind: "node", before, after }]);
  }

  #advance(revision: number, changes: readonly Change[]): void {
    this.#revision = Math.max(this.#revision, revision);
    this.#publish(changes);
    const due = this.#waiters.filter((w) => w.revision <= this.#revision);
    if (due.length === 0) return;
    this.#waiters = this.#waiters.filter((w) => w.revision > this.#revision);
    for (const waiter of due) waiter.resolve();
  }

  #publish(changes: readonly Change[]): void {
    if (changes.length > 0) this.#listeners.call(changes);
  }

  #applyReadable(event: WatchEvent, changes: Change[], dispensable: boolean): void {
    try {
      this.#applyEvent(event, changes);
    } catch (error) {
      if (!dispensable || this.#onUnreadable === undefined) throw error;
      this.#onUnreadable(event.kind === "put" ? event.record.key : event.key, error);
    }
  }

  #applyEvent(event: WatchEvent, changes: Change[]): void {
    const key = event.kind === "put" ? event.record.key : event.key;
    const record = event.kind === "put" ? event.record : undefined;
    if (key.startsWith(PREFIXES.podTemplates)) this.podTemplates.apply(key, record);
    else if (key.startsWith(PREFIXES.pods)) this.#applyPod(key, record, changes);
    else if (key.startsWith(PREFIXES.statuses)) this.#applyStatus(key, record, changes);
    else if (key.startsWith(PREFIXES.resources)) this.#applyResource(key, record, changes);
    else if (key.startsWith(PREFIXES.nodes)) this.#applyNode(key, record, changes);
    else if (key.startsWith(PREFIXES.reports)) this.#applyReport(key, record, changes);
    else if (key.startsWith(PREFIXES.rollouts)) this.#applyRollout(key, record, changes);
    else if (key.startsWith(PREFIXES.objects)) this.#applyObject(key, record, changes);
    else if (key.startsWith(PREFIXES.objectVersions)) this.objects.applyVersion(key, record);
    else if (key.startsWith(PREFIXES.revisions)) this.#applyRevision(key, record, changes);
    else if (key.startsWith(PREFIXES.workloadStatuses)) this.#applyWorkloadStatus(key, record, changes);
    else if (key.startsWith(PREFIXES.scales)) this.#applyScale(key, record, changes);
    else if (key.startsWith(PREFIXES.serviceAddresses))
      changes.push({ kind: "service-address", ...this.serviceAddresses.apply(key, record) });
    else if (key.startsWith(PREFIXES.keptPods))
      changes.push({ kind: "kept-pod", ...this.keptPods.apply(key, record) });
    else if (key.startsWith(PREFIXES.namespaces))
      changes.push({ kind: "namespace", ...this.namespaces.apply(key, record) });
    else if (key.startsWith(PREFIXES.apiTokens))
      changes.push({ kind: "api-token", ...applyToken(this.#tokens, key, record) });
  }

  #applyResource(key: string, stored: StoredRecord | undefined, changes: Change[]): void {
    const record = stored && decodeRecord(ResourceRecord, key, stored.value);
    const after = record && this.#entryOf(key, stored.modRevision, record);
    changes.push({ kind: "resource", before: this.#resources.set(key, after), after });
  }

  /** A workload's template names the versions of what its environment takes, so it changes with them. */
  #applyObject(key: string, stored: StoredRecord | undefined, changes: Change[]): void {
    const { before, after } = this.objects.apply(key, stored);
    changes.push({ kind: "object", before, after });
    const name = (after ?? before)?.name;
    for (const entry of name === undefined ? [] : this.resourcesReferring(name))
      this.#refresh(entry, changes);
  }

  #applyRevision(key: string, stored: StoredRecord | undefined, changes: Change[]): void {
    const change = this.revisions.apply(key, stored);
    changes.push({ kind: "revision", ...change });
    this.#refreshOf(change.after?.record ?? change.before?.record, changes);
  }

  #applyWorkloadStatus(key: string, stored: StoredRecord | undefined, changes: Change[]): void {
    const change = this.workloadStatuses.apply(key, stored);
    changes.push({ kind: "workload-status", ...change });
    this.#refreshOf(change.after?.record ?? change.before?.record, changes);
  }

  #applyScale(key: string, stored: StoredRecord | undefined, changes: Change[]): void {
    const change = this.scales.apply(key, stored);
    changes.push({ kind: "scale", ...change });
    const record = change.after?.record ?? change.before?.record;
    this.#refreshOf(record && { ...record, kind: "container_service" }, changes);
  }

  /** Refreshes the entry after a decision about its workload, which may change its pods' template or their number. */
  #refreshOf(
    of: { readonly namespace: string; readonly kind: string; readonly name: string } | undefined,
    changes: Change[],
  ): void {
    const entry = of && this.#resources.get(resourceKey(of.namespace, of.kind, of.name));
    if (entry === undefined) return;
    const { workload } = this.#entryOf(entry.key, entry.revision, entry.record);
    const same =
      entry.workload?.templateHash === workload?.templateHash &&
      entry.workload?.replicas === workload?.replicas;
    if (!same) this.#refresh(entry, changes);
  }

  #refresh(before: ResourceEntry, changes: Change[]): void {
    const after = this.#entryOf(before.key, before.revision, before.record);
    this.#resources.set(before.key, after);
    changes.push({ kind: "resource", before, after });
  }

  #entryOf(key: string, revision: number, record: ResourceRecord): ResourceEntry {
    return { key, revision, record, ...derivedWorkload(record, this) };
  }

  #applyPod(key: string, stored: StoredRecord | undefined, changes: Change[]): void {
    const found = stored && this.podTemplates.resolve(decodeRecord(PodRecord, key, stored.value));
    const after = found && {
      key,
      revision: stored.modRevision,
      ...found,
      workloadKey: workloadKey(found.record.namespace, found.record.workloadKind, found.record.workloadName),
      ...statusOf(this.#statuses.get(key.slice(PREFIXES.pods.length))),
    };
    changes.push({ kind: "pod", before: this.#pods.set(key, after), after });
  }

  #applyStatus(key: string, stored: StoredRecord | undefined, changes: Change[]): void {
    const name = key.slice(PREFIXES.statuses.length);
    const record = stored && decodeRecord(PodStatusRecord, key, stored.value);
    if (record === undefined) this.#statuses.delete(name);
    else this.#statuses.set(name, record);
    const before = this.#pods.get(PREFIXES.pods + name);
    if (before === undefined) return;
    const after = { ...before, ...statusOf(record) };
    this.#pods.replace(before.key, after);
    changes.push({ kind: "pod", before, after });
  }

  #applyNode(key: string, stored: StoredRecord | undefined, changes: Change[]): void {
    const name = key.slice(PREFIXES.nodes.length);
    const known = this.#nodes.get(name);
    const after = stored && {
      name,
      revision: stored.modRevision,
      record: decodeRecord(NodeRecord, key, stored.value),
      report: this.#reports.get(name),
      health: known?.health ?? { ready: false, message: "has not connected yet", lastSeenMs: undefined },
    };
    changes.push({ kind: "node", before: this.#nodes.set(name, after), after });
  }

  #applyReport(key: string, stored: StoredRecord | undefined, changes: Change[]): void {
    const name = key.slice(PREFIXES.reports.length);
    const report = stored && decodeRecord(NodeStatusRecord, key, stored.value);
    if (report === undefined) this.#reports.delete(name);
    else this.#reports.set(name, report);
    const before = this.#nodes.get(name);
    if (before === undefined) return;
    const after = { ...before, report };
    this.#nodes.replace(name, after);
    changes.push({ kind: "node", before, after });
  }

  #applyRollout(key: string, stored: StoredRecord | undefined, changes: Change[]): void {
    const id = key.slice(PREFIXES.rollouts.length);
    const after = stored && {
      id,
      revision: stored.modRevision,
      record: decodeRecord(RolloutRecord, key, stored.value),
    };
    changes.push({ kind: "rollout", before: this.#rollouts.set(id, after), after });
  }
}
