import type {
  Object as ApiObject,
  Claim,
  PriorityClass,
  RegistryCredential,
} from "@forage/proto/forage/operator/v1/operator";
import type { Column } from "../output/table.ts";
import { labelText } from "./nodes.ts";
import type { ObjectKind } from "./object-kinds.ts";
import { shortQuantity } from "./quantity.ts";
import { age } from "./timestamp.ts";

export function objectColumns(
  kind: ObjectKind,
  { nowMs, withNamespace }: { readonly nowMs: number; readonly withNamespace: boolean },
): Column<ApiObject>[] {
  const namespace: Column<ApiObject> = { title: "NAMESPACE", value: (object) => object.namespace };
  return [
    ...(withNamespace && kind !== "priority_class" ? [namespace] : []),
    { title: "NAME", value: ({ name }) => name },
    ...ownColumns[kind],
    { title: "USED BY", value: ({ usedBy }) => usedText(usedBy), whenFilled: true },
    { title: "AGE", value: ({ createdAt }) => age(createdAt, nowMs), alignRight: true },
    { title: "CHANGED", value: ({ updatedAt }) => age(updatedAt, nowMs), alignRight: true, wide: true },
    { title: "VERSION", value: ({ version }) => version.slice(0, 12), wide: true },
    { title: "LABELS", value: ({ labels }) => labelText(labels), wide: true },
  ];
}

/** Returns the keys of a secret or config map with the sizes of their values in bytes, sorted. */
export function dataSizes({ spec }: ApiObject): readonly (readonly [key: string, bytes: number])[] {
  if (spec?.$case !== "secret" && spec?.$case !== "configMap") return [];
  const { data, sizes } = spec.value;
  const fromData = Object.entries(data).map(([key, value]) => [key, value.length] as const);
  return [...new Map([...Object.entries(sizes), ...fromData])].sort(([a], [b]) => (a < b ? -1 : 1));
}

const data: readonly Column<ApiObject>[] = [
  { title: "KEYS", value: (object) => String(dataSizes(object).length), alignRight: true },
  {
    title: "BYTES",
    value: (object) => String(dataSizes(object).reduce((sum, [, bytes]) => sum + bytes, 0)),
    alignRight: true,
  },
];

const ownColumns: Readonly<Record<ObjectKind, readonly Column<ApiObject>[]>> = {
  secret: data,
  config_map: data,
  registry_credential: [
    { title: "SERVER", value: (object) => credentialOf(object)?.server ?? "" },
    { title: "USERNAME", value: (object) => credentialOf(object)?.username ?? "" },
  ],
  claim: [
    { title: "CAPACITY", value: (object) => claimOf(object)?.capacity || "no limit" },
    {
      title: "USED",
      value: (object) => shortQuantity(String(claimOf(object)?.usedBytes ?? 0n)),
      alignRight: true,
    },
    { title: "NODE", value: (object) => claimOf(object)?.node ?? "" },
    {
      title: "STATE",
      value: (object) => (claimOf(object)?.deleting === true ? "deleting" : ""),
      whenFilled: true,
    },
  ],
  priority_class: [
    { title: "VALUE", value: (object) => String(classOf(object)?.value ?? 0), alignRight: true },
    {
      title: "PREEMPTS",
      value: (object) => (classOf(object)?.neverPreempts === true ? "never" : "yes"),
    },
    {
      title: "DEFAULT",
      value: (object) => (classOf(object)?.globalDefault === true ? "yes" : ""),
      whenFilled: true,
    },
    {
      title: "DESCRIPTION",
      value: (object) => classOf(object)?.description ?? "",
      whenFilled: true,
    },
  ],
};

function credentialOf({ spec }: ApiObject): RegistryCredential | undefined {
  return spec?.$case === "registryCredential" ? spec.value : undefined;
}

function claimOf({ spec }: ApiObject): Claim | undefined {
  return spec?.$case === "claim" ? spec.value : undefined;
}

function classOf({ spec }: ApiObject): PriorityClass | undefined {
  return spec?.$case === "priorityClass" ? spec.value : undefined;
}

function usedText(usedBy: readonly string[]): string {
  const [first = ""] = usedBy;
  return usedBy.length > 1 ? `${first} and ${usedBy.length - 1} more` : first;
}
