import type { Taint, UpdateNodeRequest, UpdateNodeResponse } from "@forage/proto/forage/operator/v1/operator";
import { NodeRecord, type NodeTaint } from "@forage/proto/forage/store/v1/store";
import type { Clock } from "../../control/clock.ts";
import { CoordinatorError } from "../../errors.ts";
import { encodeRecord } from "../../model/codec.ts";
import { nodeKey } from "../../model/keys.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { State } from "../../state/state.ts";
import type { Store } from "../../store/index.ts";
import { validateUpdateNode } from "../validate/update-node.ts";
import { nodeView } from "./node-view.ts";

export interface UpdateNodeOptions {
  readonly store: Store;
  readonly state: State;
  readonly clock: Clock;
}

/** A joining agent may write the record at the same moment; more often is not by chance. */
const maxAttempts = 5;

/** Throws INVALID, NOT_FOUND, or CONFLICT when the record changes again and again. */
export async function updateNode(
  request: UpdateNodeRequest,
  { store, state, clock }: UpdateNodeOptions,
): Promise<UpdateNodeResponse> {
  validateUpdateNode(request);
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const node = state.node(request.name);
    if (node === undefined) throw new CoordinatorError("NOT_FOUND", `there is no node "${request.name}"`);
    const record: NodeRecord = {
      ...node.record,
      unschedulable: request.unschedulable ?? node.record.unschedulable,
      taints: changedTaints(node.record.taints, request, clock.nowMs()),
    };
    const key = nodeKey(node.name);
    const result = await store.txn(
      [{ kind: "modRevision", key, revision: node.revision }],
      [{ kind: "put", key, value: encodeRecord(NodeRecord, record) }],
    );
    await state.reached(result.revision);
    const now = state.node(request.name);
    if (result.succeeded) return { node: now === undefined ? undefined : nodeView(state, now) };
  }
  throw new CoordinatorError("CONFLICT", "the node's record changed meanwhile; try again");
}

/** A taint that is there already keeps the time since which it holds. */
function changedTaints(
  taints: readonly NodeTaint[],
  { setTaints, removeTaints }: UpdateNodeRequest,
  nowMs: number,
): NodeTaint[] {
  const stays = taints.filter(
    ({ key, effect }) =>
      !removeTaints.some((it) => it.key === key && (it.effect === "" || it.effect === effect)) &&
      !setTaints.some((it) => it.key === key && it.effect === effect),
  );
  const set = setTaints.map((taint): NodeTaint => {
    const before = taints.find((it) => same(it, taint));
    return { ...taint, addedAt: before?.addedAt ?? toTimestamp(nowMs) };
  });
  return [...stays, ...set];
}

function same(a: Taint, b: Taint): boolean {
  return a.key === b.key && a.effect === b.effect && a.value === b.value;
}
