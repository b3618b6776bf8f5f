import { didYouMean } from "../command/suggest.ts";
import type { Field } from "../conversion/field.ts";
import { METADATA_FIELDS } from "./metadata-fields.ts";
import { NO_SCOPE, noEffect, type Rules, readFields, textsOf } from "./rules.ts";

/** One object in the files. */
export interface Item {
  readonly kind: string;
  readonly name: string;
  /** The namespace; undefined if the object names none, and empty for cluster-scoped kinds. */
  readonly namespace: string | undefined;
  /** The object as a whole. */
  readonly field: Field;
  readonly spec: Field | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** The supported versions of each kind. */
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

/** Kinds whose fields are at the top level, and not below `spec`. */
const WITHOUT_SPEC = ["ConfigMap", "Namespace", "PriorityClass", "Secret"];

const ELSEWHERE = noEffect("read on its own");
export const ITEM_FIELDS: Rules = {
  apiVersion: ELSEWHERE,
  kind: ELSEWHERE,
  metadata: ELSEWHERE,
  spec: ELSEWHERE,
  status: noEffect("the server of a cluster sets it"),
};

/** Returns the objects of a document: one, or the items of a list. */
export function objectsOf(root: Field): readonly Field[] {
  const items = root.get("items");
  return root.get("kind")?.text().endsWith("List") === true && items !== undefined ? items.items() : [root];
}

/**
 * Reads the fields common to all kinds. Returns undefined, after reporting a problem or a loss, if
 * the object is not supported.
 */
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
