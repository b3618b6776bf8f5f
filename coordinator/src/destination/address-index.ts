import { addressesOfNode, addressesOfPod } from "../endpoints/change-keys.ts";
import { addressKey } from "../ip/address.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Change, NodeEntry, PodEntry } from "../state/entries.ts";
import { IndexMap } from "../state/index-map.ts";

/**
 * Maps IP addresses to their pods and nodes. Pods of different hosts can have the same address,
 * because each host has its own pod network.
 */
export class AddressIndex {
  readonly #pods = new IndexMap<PodEntry>((pod) => groupsOf(addressesOfPod(pod)));
  readonly #nodes = new IndexMap<NodeEntry>((node) => groupsOf(addressesOfNode(node)));

  constructor(state: ClusterView) {
    for (const pod of state.pods()) this.#pods.set(pod.key, pod);
    for (const node of state.nodes()) this.#nodes.set(node.name, node);
  }

  apply(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.type === "pod") {
        const { before, after } = change;
        const pod = after ?? before;
        if (pod === undefined) continue;
        // A new pod gets its address from its node, and most changes of a pod leave its addresses as they are.
        if (before === undefined && addressesOfPod(pod).length === 0) continue;
        if (after !== undefined && hasSameAddresses(before, after)) this.#pods.replace(after.key, after);
        else this.#pods.set(pod.key, after);
      } else if (change.type === "node") {
        const node = change.after ?? change.before;
        if (node !== undefined) this.#nodes.set(node.name, change.after);
      }
    }
  }

  podsAt(ip: string): PodEntry[] {
    return this.#pods.group(addressKey(ip) ?? ip);
  }

  nodesAt(ip: string): NodeEntry[] {
    return this.#nodes.group(addressKey(ip) ?? ip);
  }
}

function hasSameAddresses(before: PodEntry | undefined, after: PodEntry): boolean {
  if (before?.key !== after.key) return false;
  const [old, now] = [before.status, after.status];
  if (old === now) return true;
  const [oldIps, ips] = [old?.podIps ?? [], now?.podIps ?? []];
  if ((old?.podIp ?? "") !== (now?.podIp ?? "") || oldIps.length !== ips.length) return false;
  return ips.every((ip, index) => ip === oldIps[index]);
}

function groupsOf(ips: readonly string[]): readonly string[] {
  return ips.flatMap((ip) => addressKey(ip) ?? []);
}
