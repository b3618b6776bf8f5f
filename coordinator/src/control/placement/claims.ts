import { ObjectRecord } from "@forage/proto/forage/store/v1/store";
import type { StoreWrite } from "../../model/batches.ts";
import { encodeRecord } from "../../model/codec.ts";
import { titleOf } from "../../model/object-name.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ObjectEntry, PodEntry } from "../../state/entries.ts";

/** The limits that a pod's claims set for its placement. */
export interface ClaimTies {
  /** The nodes that hold the claims' data. */
  readonly nodes: readonly string[];
  /** Claims that go where the pod goes. */
  readonly unbound: readonly ObjectEntry[];
  readonly bound: readonly ObjectEntry[];
  /** The reason why the pod can't be placed yet. */
  readonly problem?: string;
}

/** Pure. */
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

/** Returns the writes that tie a pod's claims to its node, in the transaction that binds the pod. */
export function bindClaims({ unbound, bound }: ClaimTies, node: string): StoreWrite {
  return {
    compares: [...bound, ...unbound].map(({ key, revision }) => ({ kind: "modRevision", key, revision })),
    ops: unbound.map(({ key, record }) => {
      const value = record.spec?.$case === "claim" ? { ...record.spec.value, node } : undefined;
      if (value === undefined) throw new TypeError(`${key} is no claim`);
      const changed = { ...record, spec: { $case: "claim", value } } as const;
      return { kind: "put", key, value: encodeRecord(ObjectRecord, changed) };
    }),
  };
}
