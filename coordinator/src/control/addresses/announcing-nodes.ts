import type { NodeEntry } from "../../state/entries.ts";
import { labelOf } from "../../state/node-labels.ts";
import { serves } from "../../state/serves.ts";
import type { State } from "../../state/state.ts";
import { type AnnouncingNode, parseNetwork } from "./announcer.ts";

/** A label of nodes that never announce addresses of load balancers. Whatever its value, as in Kubernetes, but "false". */
export const excludeLabel = "forage.dev/exclude-from-load-balancers";

export function announcingNodes(state: State): AnnouncingNode[] {
  return state.nodes().flatMap((node) => {
    if (!mayAnnounce(node)) return [];
    const { record, report } = node;
    return {
      name: node.name,
      // Not by the node's own word: an agent that starts isn't ready for a moment, while its host's kernel goes on.
      ready: serves(node),
      cordoned: record.unschedulable,
      draining: record.drain !== undefined,
      networks: (report?.report?.networks ?? []).flatMap((it) => parseNetwork(it) ?? []),
    };
  });
}

/** Nodes by the addresses by which others reach them: a service never gets one of these, however the operator wrote the pool. */
export function hostAddresses(state: State): ReadonlyMap<string, string> {
  return new Map(
    state.nodes().flatMap(({ name, report }) => {
      const { address = "", addresses = [] } = report?.report ?? {};
      return [address, ...addresses].map((ip) => [ip, name] as const);
    }),
  );
}

/** Whether what is decided by has changed. */
export function concernsAnnouncing(before: NodeEntry | undefined, after: NodeEntry | undefined): boolean {
  return essence(before) !== essence(after);
}

function essence(node: NodeEntry | undefined): string {
  if (node === undefined || !mayAnnounce(node)) return "";
  const { record, report } = node;
  const networks = report?.report?.networks ?? [];
  return JSON.stringify([serves(node), record.unschedulable, record.drain !== undefined, networks]);
}

function mayAnnounce(node: NodeEntry): boolean {
  return !node.record.revoked && (labelOf(node, excludeLabel) ?? "false") === "false";
}
