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
import { KnownJobs } from "./known-jobs.ts";
import { Listeners } from "./listeners.ts";
import { ObjectsView } from "./objects-view.ts";
import { statusOf } from "./pod-status.ts";
import { PodTemplates } from "./pod-templates.ts";
import { addressGroups, revisionGroups } from "./record-groups.ts";
import { RecordView } from "./record-view.ts";
import { compareRollouts } from "./rollout-order.ts";
import type { StateOptions } from "./state-options.ts";
import { isDispensable } from "./unreadable.ts";

/**
 * The coordinator's complete state, in memory and indexed. All reads are served from it. It is only changed by the store's
 * watch (`apply`) and the nodes' health, which describes the current state and is not stored.
 */
export class ClusterView {
  readonly #resources = new IndexMap<ResourceEntry>(resourceGroups);
  readonly #pods = new IndexMap<PodEntry>(podGroups, ({ record }) => record.uid);
  readonly #statuses = new Map<string, PodStatusRecord>();
  readonly #nodes = new IndexMap<NodeEntry>();
  readonly #reports = new Map<string, NodeStatusRecord>();
  readonly #rollouts = new IndexMap<RolloutEntry>((r) => rolloutGroups(r.record));
  readonly podTemplates = new PodTemplates();
  readonly jobs = new KnownJobs();
  /** Secrets, config maps and the other objects that pods refer to. */
  readonly objects = new ObjectsView();
  /** Revisions, with the groups `workload:KEY` by workload and `pin:NAMESPACE/KIND/NAME` by pinned object. */
  readonly revisions = new RecordView<RevisionRecord>(RevisionRecord, revisionGroups);
  /**
   * Failed pods that a rollback has stopped, with the groups `workload:KEY` by workload and `ns:NAMESPACE` by namespace.
   */
  readonly keptPods = new RecordView<KeptPodRecord>(KeptPodRecord, keptPodGroups);
  readonly workloadStatuses = new RecordView<WorkloadStatusRecord>(WorkloadStatusRecord);
  readonly scales = new RecordView<ScaleRecord>(ScaleRecord);
  /** Policies and quotas, by namespace. */
  readonly namespaces = new RecordView<NamespaceRecord>(NamespaceRecord);
  /** Addresses of services, with the group `ip:ADDRESS` by address. */
  readonly serviceAddresses = new RecordView<ServiceAddressRecord>(ServiceAddressRecord, addressGroups);
  readonly #tokens = new IndexMap<ApiTokenEntry>(() => []);
  readonly #listeners: Listeners;
  readonly #onUnreadable: ((key: string, error: unknown) => void) | undefined;
  #waiters: { readonly revision: number; readonly resolve: () => void }[] = [];
  #revision = 0;

  constructor(options: StateOptions = {}) {
    this.#listeners = new Listeners(options.onListenerError);
    this.#onUnreadable = options.onUnreadable;
  }

  /** The revision of the store up to which the view contains all changes. */
  get revision(): number {
    return this.#revision;
  }

  resource(key: string): ResourceEntry | undefined {
    return this.#resources.get(key);
  }

  resources(namespace?: string): ResourceEntry[] {
    return namespace === undefined ? this.#resources.values() : this.#resources.group(`ns:${namespace}`);
  }

  /** Returns the workloads that refer to the object. */
  resourcesReferring(name: ObjectName): ResourceEntry[] {
    return this.#resources.group(`ref:${objectKey(name)}`);
  }

  /** Returns the pods that refer to the object. */
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

  /** Returns the services whose target is the workload with the key `namespace/kind/name`. */
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

  /** Returns the templates of the workload that no pod uses. */
  unusedTemplates(key: string): { readonly key: string; readonly revision: number }[] {
    return this.podTemplates.ofWorkload(key).filter((it) => !this.#pods.hasGroup(templateGroup(it.key)));
  }

  podsOnNode(name: string): PodEntry[] {
    return this.#pods.group(`node:${name}`);
  }

  /** Returns the pods without a node that are not stopping: of one workload, or of all. */
  unboundPods(workload?: string): PodEntry[] {
    return this.#pods.group(workload === undefined ? "unbound" : `unbound:${workload}`);
  }

  /** Returns the pods that are marked to leave their nodes and are not stopping yet: of one workload, or of all. */
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

  /** Returns the rollouts that contain the resource, oldest first. */
  rolloutsOf(namespace: string, kind: string, name: string): RolloutEntry[] {
    // After a start, they were loaded in the order of their ids.
    const found = this.#rollouts.group(`resource:${namespace}/${kind}/${name}`);
    return found.sort((a, b) => compareRollouts(a.record, b.record));
  }

  /** Returns the unfinished rollouts that contain the resource, in any order. */
  activeRolloutsOf(namespace: string, kind: string, name: string): RolloutEntry[] {
    return this.#rollouts.group(`active:${namespace}/${kind}/${name}`);
  }

  apiToken(id: string): ApiTokenEntry | undefined {
    return this.#tokens.get(id);
  }

  apiTokens(): ApiTokenEntry[] {
    return this.#tokens.values();
  }

  /** The number of subscribed listeners. */
  get listenerCount(): number {
    return this.#listeners.size;
  }

  /** Calls the listener with all changes of each revision. Returns a function that ends the subscription. */
  subscribe(listener: (changes: readonly Change[]) => void): () => void {
    return this.#listeners.add(listener);
  }

  /** Resolves when the view contains the revision. A caller awaits it after a write and before it reads. */
  reached(revision: number): Promise<void> {
    if (this.#revision >= revision) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push({ revision, resolve }));
  }

  /** Loads the content of the store. @throws the error of a record that can't be decoded and that is not dispensable. */
  load(records: readonly StoredRecord[], revision: number): void {
    const changes: Change[] = [];
    for (const record of records)
      this.#applyReadable({ type: "put", record }, changes, isDispensable(record.key));
    this.#advance(revision, changes);
  }

  /** Applies the changes of one revision. Keeps the previous entry of a record that can't be decoded. */
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
    if (notify) this.#publish([{ type: "node", before, after }]);
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
      this.#onUnreadable(event.type === "put" ? event.record.key : event.key, error);
    }
  }

  #applyEvent(event: WatchEvent, changes: Change[]): void {
    const key = event.type === "put" ? event.record.key : event.key;
    const record = event.type === "put" ? event.record : undefined;
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
      changes.push({ type: "service-address", ...this.serviceAddresses.apply(key, record) });
    else if (key.startsWith(PREFIXES.keptPods))
      changes.push({ type: "kept-pod", ...this.keptPods.apply(key, record) });
    else if (key.startsWith(PREFIXES.namespaces))
      changes.push({ type: "namespace", ...this.namespaces.apply(key, record) });
    else if (key.startsWith(PREFIXES.apiTokens))
      changes.push({ type: "api-token", ...applyToken(this.#tokens, key, record) });
  }

  #applyResource(key: string, stored: StoredRecord | undefined, changes: Change[]): void {
    const record = stored && decodeRecord(ResourceRecord, key, stored.value);
    const after = record && this.#entryOf(key, stored.modRevision, record);
    changes.push({ type: "resource", before: this.#resources.set(key, after), after });
  }

  /** Updates workloads that use the object in their environment, because their template contains the object's version. */
  #applyObject(key: string, stored: StoredRecord | undefined, changes: Change[]): void {
    const { before, after } = this.objects.apply(key, stored);
    changes.push({ type: "object", before, after });
    const name = (after ?? before)?.name;
    for (const entry of name === undefined ? [] : this.resourcesReferring(name))
      this.#refresh(entry, changes);
  }

  #applyRevision(key: string, stored: StoredRecord | undefined, changes: Change[]): void {
    const change = this.revisions.apply(key, stored);
    changes.push({ type: "revision", ...change });
    this.#refreshOf(change.after?.record ?? change.before?.record, changes);
  }

  #applyWorkloadStatus(key: string, stored: StoredRecord | undefined, changes: Change[]): void {
    const change = this.workloadStatuses.apply(key, stored);
    changes.push({ type: "workload-status", ...change });
    this.#refreshOf(change.after?.record ?? change.before?.record, changes);
  }

  #applyScale(key: string, stored: StoredRecord | undefined, changes: Change[]): void {
    const change = this.scales.apply(key, stored);
    changes.push({ type: "scale", ...change });
    const record = change.after?.record ?? change.before?.record;
    this.#refreshOf(record && { ...record, kind: "container_service" }, changes);
  }

  /** Derives the workload again after a decision about it, which may change its pods' template or number. */
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
    changes.push({ type: "resource", before, after });
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
      ...statusOf(this.#statuses.get(key.slice(PREFIXES.pods.length))),
    };
    changes.push({ type: "pod", before: this.#pods.set(key, after), after });
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
    changes.push({ type: "pod", before, after });
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
    changes.push({ type: "node", before: this.#nodes.set(name, after), after });
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
    changes.push({ type: "node", before, after });
  }

  #applyRollout(key: string, stored: StoredRecord | undefined, changes: Change[]): void {
    const id = key.slice(PREFIXES.rollouts.length);
    const after = stored && {
      id,
      revision: stored.modRevision,
      record: decodeRecord(RolloutRecord, key, stored.value),
    };
    changes.push({ type: "rollout", before: this.#rollouts.set(id, after), after });
  }
}
