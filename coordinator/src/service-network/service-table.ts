import { ConnectResponse, ServiceState, type ServiceUpdate } from "@forage/proto/forage/agent/v1/agent";
import { addressOfNode } from "../destination/keys.ts";
import { workloadKey } from "../model/workload.ts";
import type { Change, NodeEntry } from "../state/entries.ts";
import { IndexMap } from "../state/index-map.ts";
import type { State } from "../state/state.ts";
import { reachabilityLabel, serviceStateOf } from "./service-state.ts";

export interface ServiceTableOptions {
  readonly state: State;
  /** For example `cluster.local`. */
  readonly domain: string;
  /** CIDRs. */
  readonly virtualIpRanges: readonly string[];
  /** Runs later, and lets the world outside in between: `setImmediate`. */
  readonly defer: (run: () => void) => void;
  /** A message that has so much in it is sent, and another follows. */
  readonly partBytes?: number;
}

/** One step of a reader: it has been told all up to this version. */
export interface Step {
  readonly version: number;
  /** Encoded ConnectResponses; those who are as far share the bytes. */
  readonly messages: readonly Buffer[];
}

interface Known {
  readonly key: string;
  readonly state: ServiceState;
  readonly bytes: Uint8Array;
}

interface Target {
  /** `namespace/name` of the service. */
  readonly key: string;
  readonly workload: string;
}

/** Well below what agents take in one message. */
const defaultPartBytes = 512 * 1024;
/** Who is further behind gets everything. */
const maxRemembered = 4_096;
const maxCached = 16;

/** All services as agents see them: worked out once for all, service by service as the view changes. */
export class ServiceTable {
  readonly #options: ServiceTableOptions;
  readonly #known = new Map<string, Known>();
  readonly #targets = new IndexMap<Target>(({ workload }) => [workload]);
  readonly #dirty = new Set<string>();
  /** What changed with which version, oldest first. */
  readonly #changes: { readonly version: number; readonly key: string }[] = [];
  readonly #steps = new Map<number | undefined, readonly Buffer[]>();
  readonly #readers = new Set<() => void>();
  readonly #unsubscribe: () => void;
  #version = 0;
  #scheduled = false;

  constructor(options: ServiceTableOptions) {
    this.#options = options;
    for (const { record } of options.state.resources()) {
      if (record.kind === "service") this.#serviceChanged(record.namespace, record.name);
    }
    this.#settle();
    this.#unsubscribe = options.state.subscribe((changes) => this.#follow(changes));
  }

  /** Calls when there is something new. Returns how to stop. */
  read(wake: () => void): () => void {
    this.#readers.add(wake);
    return () => this.#readers.delete(wake);
  }

  /** What leads to the present from what a reader has been told; from nothing: everything. */
  after(told: number | undefined): Step {
    const version = this.#version;
    if (told === version) return { version, messages: [] };
    const known = this.#steps.get(told);
    if (known !== undefined) return { version, messages: known };
    const messages = this.#messages(told);
    if (this.#steps.size < maxCached) this.#steps.set(told, messages);
    return { version, messages };
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
    switch (change.kind) {
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

  /** Looks at what may have changed; gives whether anything has. */
  #settle(): boolean {
    const version = this.#version + 1;
    let changed = false;
    for (const key of this.#dirty) {
      const [namespace = "", name = ""] = key.split("/");
      const state = serviceStateOf(this.#options.state, namespace, name);
      const before = this.#known.get(key);
      const bytes = state && ServiceState.encode(state).finish();
      if (bytes === undefined ? before === undefined : sameBytes(before?.bytes, bytes)) continue;
      if (state === undefined || bytes === undefined) this.#known.delete(key);
      else this.#known.set(key, { key, state, bytes });
      this.#changes.push({ version, key });
      changed = true;
    }
    this.#dirty.clear();
    if (!changed) return false;
    this.#version = version;
    this.#steps.clear();
    if (this.#changes.length > maxRemembered) this.#changes.splice(0, this.#changes.length - maxRemembered);
    return true;
  }

  #messages(told: number | undefined): readonly Buffer[] {
    const full = told === undefined || told + 1 < (this.#changes[0]?.version ?? 0);
    const keys = full
      ? [...this.#known.keys()]
      : [...new Set(this.#changes.filter(({ version }) => version > told).map(({ key }) => key))];
    const upserts = keys.flatMap((key) => this.#known.get(key) ?? []);
    const removals = keys
      .filter((key) => !this.#known.has(key))
      .map((key) => {
        const [namespace = "", name = ""] = key.split("/");
        return { namespace, name };
      });
    return [...this.#parts(upserts)].map(({ part, more }) =>
      this.#encode({
        full,
        upserts: part.map(({ state }) => state),
        removals: more ? [] : removals,
        more,
        clusterDomain: this.#options.domain,
        virtualIpRanges: [...this.#options.virtualIpRanges],
      }),
    );
  }

  *#parts(
    services: readonly Known[],
  ): Generator<{ readonly part: readonly Known[]; readonly more: boolean }> {
    const { partBytes = defaultPartBytes } = this.#options;
    let part: Known[] = [];
    let bytes = 0;
    for (const service of services) {
      if (part.length > 0 && bytes + service.bytes.length > partBytes) {
        yield { part, more: true };
        part = [];
        bytes = 0;
      }
      part.push(service);
      bytes += service.bytes.length;
    }
    yield { part, more: false };
  }

  #encode(value: ServiceUpdate): Buffer {
    return Buffer.from(ConnectResponse.encode({ message: { $case: "services", value } }).finish());
  }
}

/** Heartbeats bring reports, too, in which nothing of this is new. */
function concernsEndpoints(before: NodeEntry | undefined, after: NodeEntry | undefined): boolean {
  return (
    before?.health.ready !== after?.health.ready ||
    addressOfNode(before) !== addressOfNode(after) ||
    before?.record.labels[reachabilityLabel] !== after?.record.labels[reachabilityLabel] ||
    before?.report?.report?.labels[reachabilityLabel] !== after?.report?.report?.labels[reachabilityLabel]
  );
}

function sameBytes(a: Uint8Array | undefined, b: Uint8Array): boolean {
  return a !== undefined && Buffer.compare(a, b) === 0;
}
