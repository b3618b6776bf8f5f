import { didYouMean } from "../command/suggest.ts";
import type { Field } from "../conversion/field.ts";
import { METADATA_FIELDS } from "./metadata-fields.ts";
import { NO_SCOPE, noEffect, type Rules, readFields, textsOf } from "./rules.ts";

/** One object of the files. */
export interface Item {
  readonly kind: string;
  readonly name: string;
  /** Undefined if the object names none; empty if its kind belongs to none. */
  readonly namespace: string | undefined;
  /** The object as a whole. */
  readonly field: Field;
  readonly spec: Field | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** The versions of each kind that are read. */
export const VERSIONS: Readonly<Record<string, readonly string[]>> = {
  ConfigMap: ["v1"],
  CronJob: ["batch/v1"],
  DaemonSet: ["apps/v1"],
  Deployment: ["apps/v1"],
  HTTPRoute: ["gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1beta1"],
  HorizontalPodAutoscaler: ["autoscaling/v2", "autoscaling/v1"],
  Ingress: ["networking.k8s.io/v1"],
  Job: ["batch/v1"],
  Namespace: ["v1"],
  PersistentVolumeClaim: ["v1"],
  PriorityClass: ["scheduling.k8s.io/v1"],
  Secret: ["v1"],
  Service: ["v1"],
  StatefulSet: ["apps/v1"],
};

/** Kinds whose own fields stand beside `metadata`, not below `spec`. */
const WITHOUT_SPEC = ["ConfigMap", "Namespace", "PriorityClass", "Secret"];

const ELSEWHERE = noEffect("read on its own");
export const ITEM_FIELDS: Rules = {
  apiVersion: ELSEWHERE,
  kind: ELSEWHERE,
  metadata: ELSEWHERE,
  spec: ELSEWHERE,
  status: noEffect("the server of a cluster sets it"),
};

/** The objects of a document: one, or those of a list. */
export function objectsOf(root: Field): readonly Field[] {
  const items = root.get("items");
  return root.get("kind")?.text().endsWith("List") === true && items !== undefined ? items.items() : [root];
}

/** Reads what all kinds have. Returns undefined, with a problem or a loss, if the object is not read. */
export function readItem(field: Field): Item | undefined {
  const [kind = "", apiVersion = ""] = [field.get("kind")?.text(), field.get("apiVersion")?.text()];
  const versions = Object.hasOwn(VERSIONS, kind) ? VERSIONS[kind] : undefined;
  if (versions === undefined)
    return field.lose(`the kind "${kind}" is not read${didYouMean(kind, Object.keys(VERSIONS))}`);
  if (!versions.includes(apiVersion))
    return (field.get("apiVersion") ?? field).fail(`must be ${versions.join(" or ")}, for the kind ${kind}`);
  if (!WITHOUT_SPEC.includes(kind)) readFields(field, ITEM_FIELDS, NO_SCOPE);
  const metadata = field.get("metadata");
  const name = metadata?.get("name")?.text();
  if (metadata !== undefined) readFields(metadata, METADATA_FIELDS, NO_SCOPE);
  if (name === undefined)
    return metadata?.get("generateName") === undefined ? field.fail("has no metadata.name") : undefined;
  const [labels, annotations] = [metadata?.get("labels"), metadata?.get("annotations")];
  return {
    kind,
    name,
    namespace: kind === "PriorityClass" ? "" : metadata?.get("namespace")?.text(),
    field,
    spec: field.get("spec"),
    labels: labels === undefined ? {} : textsOf(labels),
    annotations: annotations === undefined ? {} : textsOf(annotations),
  };
}
