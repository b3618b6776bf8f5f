import { ConnectResponse, ServiceState } from "@forage/proto/forage/agent/v1/agent";
import { addressesOfNode } from "../endpoints/change-keys.ts";
import { ObjectFaults } from "../faults/object-faults.ts";
import { type Delta, DeltaLog, type Step } from "../feed/delta-log.ts";
import type { BuiltInServices } from "../model/built-in-service.ts";
import { workloadKey } from "../model/workload.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Change, NodeEntry } from "../state/entries.ts";
import { IndexMap } from "../state/index-map.ts";
import { isLocalOnly } from "../state/node-labels.ts";
import { serves } from "../state/serves.ts";
import { serviceStateOf } from "./service-state.ts";

export interface ServiceTableOptions {
  readonly state: ClusterView;
  /** The cluster's domain, such as `cluster.local`. */
  readonly domain: string;
  /** The CIDRs of virtual IPs. */
  readonly virtualIpRanges: readonly string[];
  /** Schedules work after pending I/O, like `setImmediate`. */
  readonly defer: (run: () => void) => void;
  /** The size at which a message is sent and another one is started. */
  readonly partBytes?: number;
  /** Handles errors of single services. */
  readonly faults?: ObjectFaults;
  readonly builtIn?: BuiltInServices | undefined;
}

interface Target {
  /** The key of the service, `namespace/name`. */
  readonly key: string;
  readonly workload: string;
}

/**
 * Holds all services as agents receive them. Each is computed once for all nodes when it changes.
 */
export class ServiceTable {
  readonly #options: ServiceTableOptions;
  readonly #log: DeltaLog<ServiceState>;
  readonly #targets = new IndexMap<Target>(({ workload }) => [workload]);
  readonly #faults: ObjectFaults;
  readonly #dirty = new Set<string>();
  readonly #readers = new Set<() => void>();
  readonly #unsubscribe: () => void;
  #scheduled = false;

  constructor(options: ServiceTableOptions) {
    this.#options = options;
    this.#faults = options.faults ?? new ObjectFaults({ loop: "service-network" });
    this.#log = new DeltaLog({
      encode: (service) => ServiceState.encode(service).finish(),
      message: (delta) => this.#encode(delta),
      partBytes: options.partBytes,
    });
    for (const { record } of options.state.resources()) {
      if (record.kind === "service") this.#serviceChanged(record.namespace, record.name);
    }
    for (const { namespace, name } of options.builtIn?.all() ?? []) this.#dirty.add(`${namespace}/${name}`);
    this.#settle();
    this.#unsubscribe = options.state.subscribe((changes) => this.#follow(changes));
  }

  /** Calls `wake` when the table has changed. Returns a function that ends this. */
  read(wake: () => void): () => void {
    this.#readers.add(wake);
    return () => this.#readers.delete(wake);
  }

  /**
   * Returns the changes since the state that a reader has, or the complete table for a reader
   * without a state.
   */
  after(sent: number | undefined): Step {
    return this.#log.after(sent);
  }

  close(): void {
    this.#unsubscribe();
    this.#readers.clear();
  }

  #follow(changes: readonly Change[]): void {
    for (const change of changes) this.#mark(change);
    if (this.#dirty.size === 0 || this.#scheduled) return;
    this.#scheduled = true;
    this.#options.defer(() => {
      this.#scheduled = false;
      if (this.#settle()) for (const wake of this.#readers) wake();
    });
  }

  #mark(change: Change): void {
    switch (change.type) {
      case "resource": {
        const record = (change.after ?? change.before)?.record;
        if (record?.kind === "service") this.#serviceChanged(record.namespace, record.name);
        return;
      }
      case "service-address": {
        const record = (change.after ?? change.before)?.record;
        if (record !== undefined) this.#dirty.add(`${record.namespace}/${record.name}`);
        return;
      }
      case "pod":
        this.#workloadChanged((change.after ?? change.before)?.workloadKey);
        return;
      case "node": {
        if (!concernsEndpoints(change.before, change.after)) return;
        const name = (change.after ?? change.before)?.name ?? "";
        for (const pod of this.#options.state.podsOnNode(name)) this.#workloadChanged(pod.workloadKey);
        return;
      }
      default:
    }
  }

  #serviceChanged(namespace: string, name: string): void {
    const key = `${namespace}/${name}`;
    const spec = this.#options.state.resource(`resources/${namespace}/service/${name}`)?.record.resource
      ?.spec;
    const target =
      spec?.$case === "service"
        ? { key, workload: workloadKey(namespace, "container_service", spec.value.target) }
        : undefined;
    this.#targets.set(key, target);
    this.#dirty.add(key);
  }

  #workloadChanged(key: string | undefined): void {
    if (key === undefined) return;
    for (const target of this.#targets.group(key)) this.#dirty.add(target.key);
  }

  /** Evaluates pending changes. Reports whether anything changed. */
  #settle(): boolean {
    for (const key of this.#dirty) {
      const [namespace = "", name = ""] = key.split("/");
      // An unreadable service keeps the state that agents have, and the others are updated.
      this.#faults.attempt({ kind: "service", namespace, name }, () =>
        this.#log.set(key, this.#stateOf(namespace, name)),
      );
    }
    this.#dirty.clear();
    return this.#log.commit();
  }

  #stateOf(namespace: string, name: string): ServiceState | undefined {
    const { state, builtIn } = this.#options;
    return serviceStateOf(state, namespace, name) ?? builtIn?.stateOf(namespace, name);
  }

  #encode({ full, upserts, removals, more }: Delta<ServiceState>): Buffer {
    const value = {
      full,
      upserts: [...upserts],
      removals: removals.map((key) => {
        const [namespace = "", name = ""] = key.split("/");
        return { namespace, name };
      }),
      more,
      clusterDomain: this.#options.domain,
      virtualIpRanges: [...this.#options.virtualIpRanges],
    };
    const { buffer, byteOffset, byteLength } = ConnectResponse.encode({
      message: { $case: "services", value },
    }).finish();
    // Streams keep their last message. A copy from Buffer's pool would retain 8 kB for a message of
    // a few bytes.
    return Buffer.from(buffer, byteOffset, byteLength);
  }
}

/** Reports whether a change of a node may affect endpoints, unlike most heartbeats. */
function concernsEndpoints(before: NodeEntry | undefined, after: NodeEntry | undefined): boolean {
  return (
    serves(before) !== serves(after) ||
    addressesOfNode(before).join() !== addressesOfNode(after).join() ||
    isLocalOnly(before) !== isLocalOnly(after)
  );
}
