import type { Log } from "@forage/common/log";
import type { ForgetNodeRequest, ForgetNodeResponse } from "@forage/proto/forage/operator/v1/operator";
import { type ClaimRecord, ObjectRecord } from "@forage/proto/forage/store/v1/store";
import { forgetPod } from "../../control/pod-writes.ts";
import { CoordinatorError } from "../../errors.ts";
import { batches, type StoreWrite } from "../../model/batches.ts";
import { encodeRecord } from "../../model/codec.ts";
import { nodeKey, reportKey } from "../../model/keys.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { NodeEntry, ObjectEntry } from "../../state/entries.ts";
import type { Store } from "../../store/index.ts";
import { changeNode, noSuchNode } from "./change-node.ts";

export interface ForgetOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly log: Log;
}

/** The limit of passes, because pods may be added or removed while their records are removed. */
const MAX_ROUNDS = 10;

/**
 * Removes a node. Revokes its certificates and stops placement on it first, then removes the records of its pods, releases
 * its claims, and removes its own record last. An interrupted removal continues when it is requested again. @throws
 * CoordinatorError NOT_FOUND, FAILED_PRECONDITION, CONFLICT.
 */
export async function forgetNode(
  { name, force }: ForgetNodeRequest,
  options: ForgetOptions,
): Promise<ForgetNodeResponse> {
  const { state, log } = options;
  const found = state.node(name);
  if (found === undefined) throw noSuchNode(name);
  const claims = claimsOn(name, state);
  if (!force) assertForgettable(found, claims);
  const pods = new Set<string>();
  const lost = claims.map((claim) => `${claim.name.namespace}/${claim.name.name}`);
  await changeNode(name, options, ({ record }) => ({ ...record, revoked: true, unschedulable: true }));
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const left = state.podsOnNode(name);
    for (const { record } of left) pods.add(record.uid);
    const node = state.node(name);
    if (node === undefined) return { pods: pods.size, claims: lost };
    const bound = claimsOn(name, state);
    const rest = left.length > 0 || bound.length > 0;
    await write(rest ? [...left.map(forgetPod), ...bound.map(release)] : [removal(node)], options);
    log.info({ event: "node-removal-began", node: name, pods: left.length, claims: bound.length });
  }
  throw new CoordinatorError("CONFLICT", `pods and claims of node ${name} changed repeatedly; try again`);
}

function assertForgettable(node: NodeEntry, claims: readonly ObjectEntry[]): void {
  const { name, health } = node;
  if (health.ready) {
    const how = `drain it and stop its agent first, or remove it with force`;
    throw new CoordinatorError("FAILED_PRECONDITION", `node ${name} is connected: ${how}`);
  }
  if (claims.length === 0) return;
  const names = claims.map((claim) => `${claim.name.namespace}/${claim.name.name}`).sort();
  const some = names.slice(0, MAX_NAMES).join(", ");
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : "";
  const what = `the data of claims on node ${name} would be lost: ${some}${more}`;
  throw new CoordinatorError("FAILED_PRECONDITION", `${what}; remove it with force if the node won't return`);
}

/** The largest number of names in one message. */
const MAX_NAMES = 20;

function claimsOn(node: string, state: ClusterView): ObjectEntry[] {
  return state.objects
    .list({ kind: "claim" })
    .filter(({ record: { spec } }) => spec?.$case === "claim" && spec.value.node === node);
}

/** Releases a claim whose data is gone. It starts empty with its next pod, or is removed if its removal was requested. */
function release({ key, revision, record }: ObjectEntry): StoreWrite {
  const compares = [{ type: "mod-revision", key, revision }] as const;
  if (record.spec?.$case !== "claim") throw new TypeError(`${key} is not a claim`);
  if (record.spec.value.deleting) return { compares, ops: [{ type: "delete", key }] };
  const value: ClaimRecord = { ...record.spec.value, node: "" };
  const released: ObjectRecord = { ...record, spec: { $case: "claim", value } };
  return { compares, ops: [{ type: "put", key, value: encodeRecord(ObjectRecord, released) }] };
}

function removal({ name, revision }: NodeEntry): StoreWrite {
  return {
    compares: [{ type: "mod-revision", key: nodeKey(name), revision }],
    ops: [
      { type: "delete", key: nodeKey(name) },
      { type: "delete", key: reportKey(name) },
    ],
  };
}

/** Makes the writes. Changes by others are handled in the next pass. */
async function write(writes: readonly StoreWrite[], { store, state }: ForgetOptions): Promise<void> {
  for (const part of batches(writes)) {
    const result = await store.txn(
      part.flatMap(({ compares }) => compares),
      part.flatMap(({ ops }) => ops),
    );
    await state.reached(result.revision);
  }
}
