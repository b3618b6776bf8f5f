import { ObjectRecord } from "@forage/proto/forage/store/v1/store";
import type { StoreWrite } from "../../model/batches.ts";
import { encodeRecord } from "../../model/codec.ts";
import { titleOf } from "../../model/object-name.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ObjectEntry, PodEntry } from "../../state/entries.ts";

/** The constraints that a pod's claims put on its placement. */
export interface ClaimTies {
  /** The nodes that hold the data of claims. The pod has to run there. */
  readonly nodes: readonly string[];
  /** Claims without a node. They are bound to the node of the pod. */
  readonly unbound: readonly ObjectEntry[];
  readonly bound: readonly ObjectEntry[];
  /** The reason why the pod can't be placed yet. Undefined: none. */
  readonly problem?: string;
}

/** Returns the constraints of the pod's claims. Pure. */
export function claimTiesOf({ refs }: PodEntry, state: ClusterView): ClaimTies {
  const nodes: string[] = [];
  const unbound: ObjectEntry[] = [];
  const bound: ObjectEntry[] = [];
  for (const ref of refs) {
    if (ref.kind !== "claim") continue;
    const entry = state.objects.get(ref);
    const spec = entry?.record.spec;
    if (entry === undefined || spec?.$case !== "claim")
      return { nodes, unbound, bound, problem: `waits for ${titleOf(ref)}, which doesn't exist: create it` };
    if (spec.value.deleting)
      return { nodes, unbound, bound, problem: `waits for ${titleOf(ref)}, which is being deleted` };
    if (spec.value.node === "") unbound.push(entry);
    else {
      bound.push(entry);
      nodes.push(spec.value.node);
    }
  }
  return { nodes, unbound, bound };
}

/** Returns the writes that bind a pod's claims to its node, for the transaction that binds the pod. */
export function bindClaims({ unbound, bound }: ClaimTies, node: string): StoreWrite {
  return {
    compares: [...bound, ...unbound].map(({ key, revision }) => ({ type: "mod-revision", key, revision })),
    ops: unbound.map(({ key, record }) => {
      const value = record.spec?.$case === "claim" ? { ...record.spec.value, node } : undefined;
      if (value === undefined) throw new TypeError(`${key} is not a claim`);
      const changed = { ...record, spec: { $case: "claim", value } } as const;
      return { type: "put", key, value: encodeRecord(ObjectRecord, changed) };
    }),
  };
}
