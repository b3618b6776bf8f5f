import { builtInViews, objectView } from "../../api/objects/views.ts";
import { nodeView } from "../../api/operator/node-view.ts";
import { type ResourceViewOptions, viewOrFault } from "../../api/operator/read-handlers.ts";
import { revisionsOf } from "../../api/operator/revisions.ts";
import { canaryOf } from "../../api/operator/rollout-change.ts";
import { podView } from "../../api/operator/views.ts";
import type { UnschedulablePods } from "../../control/placement/unschedulable-pods.ts";
import { resourceKey, workloadStatusKey } from "../../model/keys.ts";
import { isObjectKind } from "../../model/object-name.ts";
import type { Change, NodeEntry, ObjectEntry, PodEntry, ResourceEntry } from "../../state/entries.ts";
import { certificateRow, type LiveCertificates } from "./certificate-row.ts";
import { nodeRow } from "./node-row.ts";
import { objectRow } from "./object-row.ts";
import { podRow } from "./pod-row.ts";
import { type RolloutHold, resourceRow } from "./resource-row.ts";
import { LIVE_TOPICS, type LiveTopic } from "./rows.ts";
import { type LiveWorkspaces, workspaceRow } from "./workspace-row.ts";

export interface LiveTablesOptions extends ResourceViewOptions {
  readonly unschedulable: Pick<UnschedulablePods, "get">;
  /** The workspaces; undefined if the coordinator serves none. */
  readonly workspaces?: LiveWorkspaces | undefined;
  /** The certificates; undefined if the cluster has no issuer. */
  readonly liveCertificates?: LiveCertificates | undefined;
}

/**
 * A reader of the tables. `changed` is called synchronously with the change, and must only record
 * it.
 */
export interface LiveReader {
  changed(topic: LiveTopic, key: string): void;
}

/**
 * The interval of comparisons for rows that change without an event: node usage, and the reasons
 * why pods wait.
 */
const REFRESH_MS = 3_000;
/**
 * The most waiting pods whose reasons are compared. The reasons of others are updated with the next
 * change of the pod.
 */
const MAX_REFRESHED_PODS = 1_000;
/**
 * The most referenced objects whose pods are counted at each comparison. The counts of others are
 * updated when the object changes.
 */
const MAX_REFRESHED_OBJECTS = 1_000;
const PRIORITY_CLASS = "priority_class";

/**
 * Holds the rows of all tables as JSON. A row is built once for all readers, when it is first
 * needed. Without readers the tables are empty, and have no subscription and no timer.
 */
export class LiveTables {
  readonly #options: LiveTablesOptions;
  readonly #readers = new Set<LiveReader>();
  readonly #rows: Readonly<Record<LiveTopic, Map<string, string>>> = {
    nodes: new Map(),
    resources: new Map(),
    pods: new Map(),
    workspaces: new Map(),
    objects: new Map(),
    certificates: new Map(),
  };
  #stop = (): void => {};

  constructor(options: LiveTablesOptions) {
    this.#options = options;
  }

  get readers(): number {
    return this.#readers.size;
  }

  /** Reports changes to the reader from now on. Returns a function that stops this. */
  follow(reader: LiveReader): () => void {
    this.#readers.add(reader);
    if (this.#readers.size === 1) this.#start();
    return () => {
      if (!this.#readers.delete(reader) || this.#readers.size > 0) return;
      this.#stop();
      for (const topic of LIVE_TOPICS) this.#rows[topic].clear();
    };
  }

  /**
   * Returns the keys of all rows: a node's name, `namespace/name` or `namespace/kind/name`, an
   * instance's id, or a certificate's hostname.
   */
  keys(topic: LiveTopic): string[] {
    const { state } = this.#options;
    switch (topic) {
      case "nodes":
        return state.nodes().map(({ name }) => name);
      case "resources":
        return state.resources().map(keyOfResource);
      case "pods":
        return state.pods().map(keyOfPod);
      case "workspaces":
        return this.#options.workspaces?.ids() ?? [];
      case "objects":
        return [
          ...builtInViews().map(({ name }) => `/${PRIORITY_CLASS}/${name}`),
          ...state.objects.list({}).map(keyOfObject),
        ];
      case "certificates":
        return [...(this.#options.liveCertificates?.hostnames() ?? [])];
      default:
        return topic satisfies never;
    }
  }

  /** Returns the row as JSON, or undefined if the object no longer exists. */
  row(topic: LiveTopic, key: string): string | undefined {
    const known = this.#rows[topic].get(key);
    if (known !== undefined) return known;
    const made = this.#make(topic, key);
    if (made !== undefined && this.#readers.size > 0) this.#rows[topic].set(key, made);
    return made;
  }

  #make(topic: LiveTopic, key: string): string | undefined {
    const { state, unschedulable, gateways } = this.#options;
    const [namespace = "", second = "", third = ""] = key.split("/");
    switch (topic) {
      case "nodes": {
        const node = state.node(key);
        return node && JSON.stringify(nodeRow(nodeView(state, node, gateways), node.health.usage));
      }
      case "resources": {
        const entry = state.resource(resourceKey(namespace, second, third));
        return entry && JSON.stringify(resourceRow(viewOrFault(entry, this.#options), this.#holdOf(entry)));
      }
      case "pods": {
        const pod = state.pod(namespace, second);
        return pod && JSON.stringify(podRow(podView(state, pod, unschedulable.get(pod.record.uid))));
      }
      case "workspaces": {
        const { workspaces } = this.#options;
        const status = workspaces?.statusOf(key);
        return status && JSON.stringify(workspaceRow(status, workspaces?.namespace ?? ""));
      }
      case "objects": {
        const entry = isObjectKind(second)
          ? state.objects.get({ namespace, kind: second, name: third })
          : undefined;
        const builtIn = builtInViews().find(({ name }) => second === PRIORITY_CLASS && name === third);
        const view = entry === undefined ? builtIn : objectView(entry, state);
        return view && JSON.stringify(objectRow(view));
      }
      case "certificates": {
        const view = this.#options.liveCertificates?.viewOf(key);
        return view && JSON.stringify(certificateRow(view));
      }
      default:
        return topic satisfies never;
    }
  }

  #holdOf(entry: ResourceEntry): RolloutHold | undefined {
    const { namespace, kind, name } = entry.record;
    if (kind !== "container_service") return undefined;
    const { state } = this.#options;
    const decided = state.workloadStatuses.get(workloadStatusKey(namespace, kind, name))?.record.status;
    const status = decided?.$case === "containerService" ? decided.value : undefined;
    const revisions = revisionsOf(state, entry.record);
    return {
      paused: status?.paused === true,
      canary: canaryOf({ entry, status, revisions }) !== undefined,
    };
  }

  #start(): void {
    const { state, clock, workspaces } = this.#options;
    const stopWorkspaces = workspaces?.subscribe((id) => this.#changed("workspaces", id));
    const unsubscribe = state.subscribe((changes) => {
      for (const change of changes) this.#apply(change);
    });
    let cancel = (): void => {};
    const later = (): void => {
      cancel = clock.schedule(REFRESH_MS, () => {
        this.#refresh();
        later();
      });
    };
    later();
    this.#stop = () => {
      unsubscribe();
      stopWorkspaces?.();
      cancel();
    };
  }

  #apply(change: Change): void {
    switch (change.type) {
      case "node":
        this.#applyNode(change.before, change.after);
        return;
      case "pod":
        this.#applyPod(change.before, change.after);
        return;
      case "resource": {
        const entry = change.after ?? change.before;
        if (entry !== undefined) this.#changed("resources", keyOfResource(entry));
        return;
      }
      case "object": {
        const entry = change.after ?? change.before;
        if (entry !== undefined) this.#changed("objects", keyOfObject(entry));
        return;
      }
      case "workload-status":
      case "scale":
      case "service-address": {
        const record = (change.after ?? change.before)?.record;
        if (record === undefined) return;
        const kind = "kind" in record ? record.kind : "service";
        this.#changed("resources", `${record.namespace}/${kind}/${record.name}`);
        return;
      }
      case "rollout":
        for (const { kind, name } of change.after?.record.resources ?? [])
          this.#changed("resources", `${change.after?.record.namespace}/${kind}/${name}`);
        return;
      default:
        return;
    }
  }

  #applyNode(before: NodeEntry | undefined, after: NodeEntry | undefined): void {
    const name = (after ?? before)?.name ?? "";
    this.#changed("nodes", name);
    if (before?.health.ready === after?.health.ready) return;
    // The readiness of pods depends on that of their node.
    for (const pod of this.#options.state.podsOnNode(name)) this.#changedPod(pod);
  }

  #applyPod(before: PodEntry | undefined, after: PodEntry | undefined): void {
    const pod = after ?? before;
    if (pod === undefined) return;
    this.#changedPod(pod);
    // A changed status of a pod does not affect the row of its node.
    if (before?.record !== after?.record)
      for (const node of new Set([before?.record.node, after?.record.node]))
        if (node !== undefined && node !== "") this.#changed("nodes", node);
  }

  #changedPod(pod: PodEntry): void {
    this.#changed("pods", keyOfPod(pod));
    this.#changed("resources", pod.workloadKey);
    for (const service of this.#options.state.servicesTargeting(pod.workloadKey))
      this.#changed("resources", keyOfResource(service));
  }

  #changed(topic: LiveTopic, key: string): void {
    this.#rows[topic].delete(key);
    for (const reader of this.#readers) reader.changed(topic, key);
  }

  /** Compares the rows that can change without an event. */
  #refresh(): void {
    const { state, autoscale } = this.#options;
    for (const { name } of state.nodes()) this.#compare("nodes", name);
    this.#refreshCertificates();
    for (const entry of state.objects.list({}).slice(0, MAX_REFRESHED_OBJECTS))
      this.#compare("objects", keyOfObject(entry));
    for (const pod of state.unboundPods().slice(0, MAX_REFRESHED_PODS)) this.#compare("pods", keyOfPod(pod));
    for (const entry of state.resources()) {
      const { namespace, kind, name } = entry.record;
      const scaled = kind === "container_service" && autoscale.statusOf(namespace, name) !== undefined;
      if (scaled || kind === "route" || kind === "service" || kind === "cron_job")
        this.#compare("resources", keyOfResource(entry));
    }
  }

  /** Compares all certificates, which are added and removed without an event. */
  #refreshCertificates(): void {
    const rows = this.#rows.certificates;
    for (const key of new Set([...this.keys("certificates"), ...rows.keys()])) {
      const made = this.#make("certificates", key);
      if (made === rows.get(key)) continue;
      this.#changed("certificates", key);
      if (made !== undefined) rows.set(key, made);
    }
  }

  #compare(topic: LiveTopic, key: string): void {
    const known = this.#rows[topic].get(key);
    // A row that was never requested is built when a reader requests it.
    if (known === undefined || this.#make(topic, key) === known) return;
    this.#changed(topic, key);
  }
}

function keyOfPod({ record: { namespace, name } }: PodEntry): string {
  return `${namespace}/${name}`;
}

function keyOfObject({ name: { namespace, kind, name } }: ObjectEntry): string {
  return `${namespace}/${kind}/${name}`;
}

function keyOfResource({ record: { namespace, kind, name } }: ResourceEntry): string {
  return `${namespace}/${kind}/${name}`;
}
