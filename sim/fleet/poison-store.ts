import { NodeRecord, NodeStatusRecord, PodRecord, ResourceRecord } from "@forage/proto/forage/store/v1/store";
import { encodeRecord } from "../../coordinator/src/model/codec.ts";
import type { Op } from "../../coordinator/src/store/index.ts";
import { imageOf } from "./programs.ts";

/** The namespace of all invalid objects. */
export const POISON_NAMESPACE = "poison";
/** The prefix of nodes with invalid records and no host. */
export const POISON_NODE = "poison-node";

/** Reports whether the key belongs to a record that the coordinator keeps about an invalid object. */
export function isOfPoison(key: string): boolean {
  return key.includes(`/${POISON_NAMESPACE}/`) || key.includes(POISON_NODE);
}

export type Fields<T extends { fromPartial(value: never): unknown }> = Parameters<T["fromPartial"]>[0];

interface Codec<T> {
  encode(message: T): { finish(): Uint8Array };
  fromPartial(value: object): T;
}

/** A value that is not a date. In milliseconds it is far too large for an exact number. */
export const ABSURD = { seconds: 2n ** 62n, nanos: 2_147_483_647 };
export const BEFORE = { seconds: -(2n ** 62n), nanos: -1 };
/** The largest number that the fields of records can hold. */
export const HUGE = 2_147_483_647;
export const MOST = 4_294_967_295;
export const NAMESPACE = POISON_NAMESPACE;

export function put<T>(key: string, type: Codec<T>, fields: object): Op {
  return { type: "put", key, value: encodeRecord(type, type.fromPartial(fields)) };
}

export function raw(key: string, ...bytes: number[]): Op {
  return { type: "put", key, value: Uint8Array.from(bytes) };
}

export const container = {
  name: "main",
  image: imageOf("good", 1),
  resources: { requests: { cpu: "1m", memory: "16Mi" } },
};

export function asking(memory: string, name = "main") {
  return { ...container, name, resources: { requests: { cpu: "1m", memory } } };
}

export function resource(
  kind: string,
  $case: string,
  name: string,
  value: object | undefined,
  more: object = {},
): Op {
  const spec = value && { $case, value };
  return put(`resources/${NAMESPACE}/${kind}/${name}`, ResourceRecord, {
    ...{ namespace: NAMESPACE, kind, name, generation: 1n, specHash: "h", rolloutId: "r-poison" },
    resource: { name, ...(spec && { spec }) },
    ...more,
  });
}

export function workload(name: string, value: object, more: object = {}): Op {
  return resource(
    "container_service",
    "containerService",
    name,
    { scaling: { replicas: 1 }, container, ...value },
    more,
  );
}

export function pod(name: string, fields: Fields<typeof PodRecord>): Op {
  return put(`pods/${NAMESPACE}/${name}`, PodRecord, {
    ...{
      uid: `uid-${name}`,
      namespace: NAMESPACE,
      name,
      workloadKind: "container_service",
      workloadName: name,
    },
    ...{ template: { container }, templateHash: "h" },
    ...fields,
  });
}

export function node(name: string, record: object, report?: object): Op[] {
  const full = `${POISON_NODE}-${name}`;
  const ops = [put(`nodes/${full}`, NodeRecord, { name: full, serials: ["01"], ...record })];
  if (report !== undefined) ops.push(put(`reports/${full}`, NodeStatusRecord, { name: full, report }));
  return ops;
}

/** Invalid objects by their fault. They are on the given healthy node, or on none. */
export type Poisons = Readonly<Record<string, (on: string) => readonly Op[]>>;
