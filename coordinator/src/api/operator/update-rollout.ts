import type { UpdateRolloutRequest, UpdateRolloutResponse } from "@forage/proto/forage/operator/v1/operator";
import {
  type ContainerServiceStatus,
  ResourceRecord,
  RolloutRecord,
  WorkloadStatusRecord,
} from "@forage/proto/forage/store/v1/store";
import { CoordinatorError } from "../../errors.ts";
import { encodeRecord } from "../../model/codec.ts";
import type { EventRecorder } from "../../model/event.ts";
import { resourceKey, rolloutKey, workloadStatusKey } from "../../model/keys.ts";
import { isObjectKind } from "../../model/object-name.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { Caller } from "../../rpc/caller.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Op, Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import type { NamespaceRules } from "../namespaces/namespace-rules.ts";
import { policyRoleOf } from "../namespaces/policy.ts";
import { findService, revisionsOf } from "./revisions.ts";
import { rolloutChange } from "./rollout-change.ts";

export interface UpdateRolloutOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly events: EventRecorder;
  readonly randomName: (length: number) => string;
  readonly namespaceRules: Pick<NamespaceRules, "checkResource" | "checkUndo" | "inTurn">;
}

/** The limit of attempts. The rollout itself writes the records too, but rarely this often. */
const MAX_TRIES = 8;

/**
 * Changes a rollout. @throws CoordinatorError INVALID, NOT_FOUND, FAILED_PRECONDITION, or CONFLICT if the resource changes
 * repeatedly.
 */
export function updateRollout(
  request: UpdateRolloutRequest,
  caller: Caller,
  options: UpdateRolloutOptions,
): Promise<UpdateRolloutResponse> {
  return options.namespaceRules.inTurn(request.namespace, () => update(request, caller, options));
}

async function update(
  request: UpdateRolloutRequest,
  caller: Caller,
  options: UpdateRolloutOptions,
): Promise<UpdateRolloutResponse> {
  const { store, state, clock, events, randomName } = options;
  const { namespace, kind, name } = request;
  const statusKey = workloadStatusKey(namespace, kind, name);
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const entry = findService(state, request);
    const stored = state.workloadStatuses.get(statusKey);
    const decided = stored?.record.status;
    const status = decided?.$case === "containerService" ? decided.value : undefined;
    const nowMs = clock.nowMs();
    const revisions = revisionsOf(state, request);
    const newestVersion = (object: string) => newestVersionOf(state, namespace, object);
    const change = rolloutChange(request, { entry, status, revisions, newestVersion, nowMs });
    // An earlier revision may have required more rights than the caller has.
    if (request.action?.$case === "undo" && change.record?.resource !== undefined) {
      options.namespaceRules.checkResource(change.record.resource, namespace, caller);
      options.namespaceRules.checkUndo(entry.record, change.record.resource, caller);
    }
    const rolloutId = change.record === undefined ? entry.record.rolloutId : `r-${randomName(12)}`;
    const ops = [putStatus(entry.record, stored?.record, change.status)];
    if (change.record !== undefined)
      ops.push(
        ...newGeneration(contentOf(change.record, request, caller), {
          rolloutId,
          storeRevision: store.revision,
          nowMs,
        }),
      );
    const result = await store.txn(
      [
        { type: "mod-revision", key: entry.key, revision: entry.revision },
        { type: "mod-revision", key: statusKey, revision: stored?.revision ?? 0 },
      ],
      ops,
    );
    await state.reached(result.revision);
    if (!result.succeeded) continue;
    const { reason, message } = change;
    events.record({ namespace, kind, name, type: "Normal", reason, message, rolloutId });
    return { rolloutId, message };
  }
  throw new CoordinatorError("CONFLICT", "the rollout changed repeatedly; try again");
}

function newestVersionOf(state: ClusterView, namespace: string, object: string): string {
  const [kind = "", name = ""] = object.split("/");
  return isObjectKind(kind) ? (state.objects.get({ namespace, kind, name })?.record.versions[0] ?? "") : "";
}

function putStatus(
  { namespace, kind, name }: ResourceRecord,
  before: WorkloadStatusRecord | undefined,
  value: ContainerServiceStatus,
): Op {
  const named = before ?? WorkloadStatusRecord.fromPartial({ namespace, kind, name });
  const record = { ...named, status: { $case: "containerService", value } } as const;
  return {
    type: "put",
    key: workloadStatusKey(namespace, kind, name),
    value: encodeRecord(WorkloadStatusRecord, record),
  };
}

/**
 * Returns the record with the caller as its author if the action is an undo, which applies content. Other actions keep the
 * content.
 */
function contentOf(record: ResourceRecord, { action }: UpdateRolloutRequest, caller: Caller): ResourceRecord {
  if (action?.$case !== "undo") return record;
  return { ...record, policyRole: policyRoleOf(caller, record.namespace) };
}

/** Returns the generation that an apply of only this content would write. */
function newGeneration(
  content: ResourceRecord,
  at: { readonly rolloutId: string; readonly storeRevision: number; readonly nowMs: number },
): Op[] {
  const { rolloutId, storeRevision, nowMs } = at;
  const generation = content.generation + 1n;
  const now = toTimestamp(nowMs);
  const record: ResourceRecord = { ...content, generation, updatedAt: now, rolloutId, changedBy: "" };
  const { namespace, kind, name, specHash } = record;
  const rollout = RolloutRecord.fromPartial({
    id: rolloutId,
    namespace,
    applyId: rolloutId,
    createdAt: now,
    storeRevision: BigInt(storeRevision),
    resources: [{ kind, name, action: "update", specHash, generation }],
  });
  const key = resourceKey(namespace, kind, name);
  return [
    { type: "put", key, value: encodeRecord(ResourceRecord, record) },
    { type: "put", key: rolloutKey(rolloutId), value: encodeRecord(RolloutRecord, rollout) },
  ];
}
