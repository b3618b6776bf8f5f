import type { ForageResource } from "@forage/proto/forest/v1/forage";
import { isScalar, type ParsedNode } from "yaml";
import { findPair, isMap } from "./document.ts";

/**
 * Removes a `scaling` without replicas, which means the default of one. Messages can't distinguish
 * 0 replicas from an unset number, but the manifest can.
 */
export function withDefaultReplicas(resource: ForageResource, node: ParsedNode): ForageResource {
  const { spec } = resource;
  if (spec?.$case !== "containerService" || spec.value.scaling === undefined) return resource;
  const { replicas, autoscaling } = spec.value.scaling;
  if (replicas > 0 || autoscaling !== undefined || writesReplicas(node)) return resource;
  return { ...resource, spec: { ...spec, value: { ...spec.value, scaling: undefined } } };
}

function writesReplicas(node: ParsedNode): boolean {
  const scaling = childOf(childOf(node, ["container_service", "containerService"]), ["scaling"]);
  const replicas = childOf(scaling, ["replicas"]);
  return replicas !== undefined && !(isScalar(replicas) && replicas.value === null);
}

function childOf(node: ParsedNode | undefined, names: readonly string[]): ParsedNode | undefined {
  return node !== undefined && isMap(node) ? (findPair(node, names)?.value ?? undefined) : undefined;
}
