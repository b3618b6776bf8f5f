import { PodStatus } from "@forage/proto/forage/agent/v1/agent";
import {
  NodeRecord,
  NodeStatusRecord,
  PodRecord,
  ResourceRecord,
  RolloutRecord,
} from "@forage/proto/forage/store/v1/store";
import { ForageResource } from "@forage/proto/forest/v1/forage";
import { refsOf } from "../../src/model/pod-refs.ts";
import { toTimestamp } from "../../src/model/timestamp.ts";
import { workloadOf } from "../../src/model/workload.ts";
import type { NodeEntry, PodEntry, ResourceEntry, RolloutEntry } from "../../src/state/entries.ts";

/**
 * The fields of a pod entry, as it would come from the store, for tests of decisions based on
 * entries.
 */

export interface PodFields {
  readonly name?: string;
  readonly namespace?: string;
  readonly workload?: string;
  readonly kind?: string;
  readonly node?: string;
  readonly hash?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly stopping?: boolean;
  readonly revision?: number;
  /** The status; undefined if the node has reported none. */
  readonly status?: Parameters<typeof PodStatus.fromPartial>[0];
  readonly observedAtMs?: number;
  /** The annotations of the template. */
  readonly annotations?: Readonly<Record<string, string>>;
  readonly job?: Parameters<typeof PodRecord.fromPartial>[0]["job"];
}

export function aPod(fields: PodFields = {}): PodEntry {
  const { name = "web-1", namespace = "shop", workload = "web", kind = "container_service" } = fields;
  const record = PodRecord.fromPartial({
    uid: `uid-${name}`,
    namespace,
    name,
    workloadKind: kind,
    workloadName: workload,
    labels: fields.labels ?? {},
    template: {
      container: { name: "main", image: "app:v1" },
      ...(fields.annotations && { podConfig: { annotations: fields.annotations } }),
    },
    templateHash: fields.hash ?? "v1",
    node: fields.node ?? "n1",
    stoppingSince: fields.stopping ? toTimestamp(1) : undefined,
    job: fields.job,
  });
  return {
    key: `pods/${namespace}/${name}`,
    revision: fields.revision ?? 1,
    record,
    workloadKey: `${namespace}/${kind}/${workload}`,
    refs: refsOf(namespace, record.template),
    status:
      fields.status === undefined ? undefined : PodStatus.fromPartial({ uid: record.uid, ...fields.status }),
    observedAtMs: fields.observedAtMs,
  };
}

export interface ResourceFields {
  readonly name?: string;
  readonly namespace?: string;
  readonly spec?: object;
  readonly labels?: Readonly<Record<string, string>>;
  readonly specHash?: string;
  readonly rolloutId?: string;
  readonly deleting?: boolean;
  readonly revision?: number;
}

export function aWorkloadEntry(fields: ResourceFields = {}): ResourceEntry {
  const value = { scaling: { replicas: 2 }, container: { name: "main", image: "app:v1" }, ...fields.spec };
  return anEntry("container_service", { $case: "containerService", value }, fields);
}

export function aServiceEntry(fields: ResourceFields = {}): ResourceEntry {
  const value = { target: "web", ports: [{ name: "http", port: 80, targetPort: 8080 }], ...fields.spec };
  return anEntry("service", { $case: "service", value }, fields);
}

export function aJobEntry(fields: ResourceFields = {}): ResourceEntry {
  const value = { container: { name: "main", image: "app:v1" }, ...fields.spec };
  return anEntry("job", { $case: "job", value }, { name: "migrate", ...fields });
}

export function aCronJobEntry(fields: ResourceFields = {}): ResourceEntry {
  const value = { container: { name: "main", image: "app:v1" }, schedule: "@hourly", ...fields.spec };
  return anEntry("cron_job", { $case: "cronJob", value }, { name: "nightly", ...fields });
}

export function aRouteEntry(fields: ResourceFields = {}): ResourceEntry {
  return anEntry("route", { $case: "route", value: { targetService: "web", ...fields.spec } }, fields);
}

function anEntry(kind: string, spec: object, fields: ResourceFields): ResourceEntry {
  const { name = "web", namespace = "shop", revision = 1 } = fields;
  const record = ResourceRecord.fromPartial({
    namespace,
    kind,
    name,
    labels: fields.labels ?? {},
    resource: ForageResource.fromPartial({ name, spec } as object),
    specHash: fields.specHash ?? "h1",
    rolloutId: fields.rolloutId ?? "r-1",
    deleting: fields.deleting ?? false,
  });
  const applied = workloadOf(record);
  return { key: `resources/${namespace}/${kind}/${name}`, revision, record, workload: applied, applied };
}

export function aNode(
  fields: {
    readonly name?: string;
    readonly ready?: boolean;
    readonly address?: string;
    /** The addresses of a node with more than one. */
    readonly addresses?: readonly string[];
    readonly labels?: Readonly<Record<string, string>>;
  } = {},
): NodeEntry {
  const { name = "n1", ready = true, address = "192.0.2.1", addresses = [], labels = {} } = fields;
  return {
    name,
    revision: 1,
    record: NodeRecord.fromPartial({ name, serials: ["01"], labels }),
    report: NodeStatusRecord.fromPartial({ name, report: { address, addresses: [...addresses] } }),
    health: { ready, message: ready ? "" : "gone", lastSeenMs: 1 },
  };
}

export function aRollout(fields: Parameters<typeof RolloutRecord.fromPartial>[0]): RolloutEntry {
  const record = RolloutRecord.fromPartial({ id: "r-1", namespace: "shop", ...fields });
  return { id: record.id, revision: 1, record };
}
