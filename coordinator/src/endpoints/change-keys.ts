import { addressKey } from "../ip/address.ts";
import { resourceKey } from "../model/keys.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Change, NodeEntry, PodEntry, ResourceEntry } from "../state/entries.ts";
import { isLocalOnly, labelOf } from "../state/node-labels.ts";
import { serves } from "../state/serves.ts";

/** The keys on which topics can depend. A topic is evaluated again when one of its keys changes. */
export const dependency = {
  service: (namespace: string, name: string): string => resourceKey(namespace, "service", name),
  /** All services of a namespace, which decide the services of a pod. */
  services: (namespace: string): string => `services/${namespace}`,
  /** All routes of a namespace, including those declared inline in services. */
  routes: (namespace: string): string => `routes/${namespace}`,
  /** The pods of a workload and their nodes. */
  workload: (key: string): string => `workload/${key}`,
  /** The owner of an IP address: a service, a pod or a node. */
  address: (ip: string): string => `address/${addressKey(ip) ?? ip}`,
  /** The node of a client. */
  node: (name: string): string => `node/${name}`,
};

/** Returns the keys that the changes affect. */
export function keysOf(changes: readonly Change[], state: ClusterView): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const change of changes) addKeys(change, state, keys);
  return keys;
}

function addKeys(change: Change, state: ClusterView, keys: Set<string>): void {
  switch (change.type) {
    case "resource": {
      const record = (change.after ?? change.before)?.record;
      if (record?.kind === "service") {
        keys.add(dependency.service(record.namespace, record.name));
        keys.add(dependency.services(record.namespace));
        if ([change.before, change.after].some(hasRoute)) keys.add(dependency.routes(record.namespace));
      } else if (record?.kind === "route") keys.add(dependency.routes(record.namespace));
      return;
    }
    case "pod": {
      const { before, after } = change;
      if (after !== undefined) addPodKeys(after, state, keys);
      if (before !== undefined && !hasSameKeys(before, after)) addPodKeys(before, state, keys);
      return;
    }
    case "node":
      if (!concernsPods(change.before, change.after)) return;
      addNodeKeys(change.before, state, keys);
      addNodeKeys(change.after, state, keys);
      return;
    case "rollout":
    case "object":
    case "kept-pod":
    case "revision":
    case "workload-status":
    case "scale":
    case "api-token":
    case "namespace":
      return;
    case "service-address":
      for (const { record } of [change.before, change.after].filter((entry) => entry !== undefined))
        for (const ip of [...record.virtualIps, ...record.loadBalancerIps]) keys.add(dependency.address(ip));
      return;
    default:
      change satisfies never;
  }
}

function hasRoute(entry: ResourceEntry | undefined): boolean {
  const spec = entry?.record.resource?.spec;
  return spec?.$case === "service" && spec.value.inlineRoute !== undefined;
}

function addPodKeys(pod: PodEntry, state: ClusterView, keys: Set<string>): void {
  keys.add(dependency.workload(pod.workloadKey));
  for (const ip of addressesOfPod(pod)) keys.add(dependency.address(ip));
  for (const ip of addressesOfNode(state.node(pod.record.node))) keys.add(dependency.address(ip));
}

/** Reports whether the later entry of a pod certainly has all keys of the earlier one. */
function hasSameKeys(before: PodEntry, after: PodEntry | undefined): boolean {
  if (after === undefined || before.workloadKey !== after.workloadKey) return false;
  const [old, now] = [before.status, after.status];
  const hasSameAddress = old === undefined || (old.podIp === now?.podIp && old.podIps.length === 0);
  return hasSameAddress && (before.record.node === "" || before.record.node === after.record.node);
}

function addNodeKeys(node: NodeEntry | undefined, state: ClusterView, keys: Set<string>): void {
  if (node === undefined) return;
  keys.add(dependency.node(node.name));
  for (const ip of addressesOfNode(node)) keys.add(dependency.address(ip));
  for (const pod of state.podsOnNode(node.name)) keys.add(dependency.workload(pod.workloadKey));
}

/** Reports whether the change of a node affects endpoints of its pods. Most heartbeats don't. */
function concernsPods(before: NodeEntry | undefined, after: NodeEntry | undefined): boolean {
  return (
    serves(before) !== serves(after) ||
    addressesOfNode(before).join() !== addressesOfNode(after).join() ||
    zoneOfNode(before) !== zoneOfNode(after) ||
    isLocalOnly(before) !== isLocalOnly(after)
  );
}

export function addressOfNode(node: NodeEntry | undefined): string {
  return node?.report?.report?.address ?? "";
}

/** Returns all addresses of the node, one of each family, the primary address first. */
export function addressesOfNode(node: NodeEntry | undefined): readonly string[] {
  return allAddresses(addressOfNode(node), node?.report?.report?.addresses);
}

/** Returns the pod's own addresses, one of each family. */
export function addressesOfPod({ status }: Pick<PodEntry, "status">): readonly string[] {
  return allAddresses(status?.podIp ?? "", status?.podIps);
}

/** Returns all addresses. Nodes with one address, and agents of older versions, report only the first. */
function allAddresses(first: string, all: readonly string[] = []): readonly string[] {
  if (all.length === 0 || (all.length === 1 && all[0] === first)) return first === "" ? [] : [first];
  return [...new Set([first, ...all])].filter((it) => it !== "");
}

export function zoneOfNode(node: NodeEntry | undefined): string {
  return labelOf(node, "topology.kubernetes.io/zone") ?? "";
}
