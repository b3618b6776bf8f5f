import { ResourceRecord, RolloutRecord } from "@forage/proto/forage/store/v1/store";
import { ApplyResourcesRequest, type ApplyResourcesResponse } from "@forage/proto/forest/v1/forage";
import { CoordinatorError } from "../../errors.ts";
import { bytesOf } from "../../model/batches.ts";
import { encodeRecord } from "../../model/codec.ts";
import { hashMessage } from "../../model/hash.ts";
import { applyKey, resourceKey, rolloutKey } from "../../model/keys.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { Compare, Op, Store } from "../../store/index.ts";
import { TXN_BYTES_MAX } from "../../store/limits.ts";
import type { Clock } from "../../time/clock.ts";
import { type BundleItem, planBundle } from "./bundle.ts";
import { needsRetry } from "./needs-retry.ts";

export interface ApplyOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly randomName: (length: number) => string;
  /** The caller's name. */
  readonly by?: string;
  /** Whether resources with the request's labels that are not part of the request are kept. */
  readonly keepOthers?: boolean;
  /** The keys of the resources that the user agreed to remove. Undefined: any may be removed. */
  readonly agreedRemovals?: ReadonlySet<string> | undefined;
  /** The kind of the caller's token, see `ResourceRecord`. */
  readonly policyRole?: string;
}

/** The limit of attempts when other requests write the same resources at the same time. */
const MAX_TRIES = 8;
/**
 * The limit of resources in one apply. With the rollout and the apply id, the write stays below the store's 128 operations
 * in a transaction.
 */
const MAX_ITEMS = 120;

/** Stores the whole validated request in one transaction. Retries if other requests change the same resources. */
export async function applyResources(
  request: ApplyResourcesRequest,
  options: ApplyOptions,
): Promise<ApplyResourcesResponse> {
  const { keepOthers = false } = options;
  const contentHash = hashMessage(ApplyResourcesRequest, { ...request, applyId: "" });
  const requestHash = keepOthers ? `${contentHash} keep-others` : contentHash;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const earlier = await findApply(request, requestHash, options);
    if (earlier !== undefined) return earlier;
    const rolloutId = `r-${options.randomName(12)}`;
    const items = bundleOf(request, options.state, keepOthers);
    assertAgreed(items, options.agreedRemovals);
    if (items.length > MAX_ITEMS)
      throw tooLarge(
        `changes ${items.length} resources, removals included; at most ${MAX_ITEMS} are allowed in one apply`,
      );
    const { compares, ops } = transaction(request, items, rolloutId, requestHash, options);
    const bytes = bytesOf({ compares, ops });
    if (bytes > TXN_BYTES_MAX)
      throw tooLarge(
        `makes records of ${bytes} bytes, removals and the labels of each included; at most ${TXN_BYTES_MAX} go in one`,
      );
    const result = await options.store.txn(compares, ops);
    await options.state.reached(result.revision);
    if (result.succeeded) return { rolloutId };
  }
  throw new CoordinatorError("CONFLICT", "other requests changed the same resources repeatedly; try again");
}

/** Returns the changes of the request to the current resources. */
export function bundleOf(
  request: ApplyResourcesRequest,
  state: ClusterView,
  keepOthers = false,
): BundleItem[] {
  return planBundle(request, state.resources(request.namespace), {
    needsRetry: (entry) => needsRetry(state, entry),
    keepOthers,
  });
}

/** The largest number of names in the message. */
const MAX_NAMED_REMOVALS = 5;

/** Rejects the apply if it removes resources that the user has not agreed to remove. */
function assertAgreed(items: readonly BundleItem[], agreed: ReadonlySet<string> | undefined): void {
  if (agreed === undefined) return;
  const others = items.filter(
    ({ action, key, existing }) => action === "remove" && !existing?.record.deleting && !agreed.has(key),
  );
  if (others.length === 0) return;
  const names = others.slice(0, MAX_NAMED_REMOVALS).map(({ kind, name }) => `${kind}/${name}`);
  const more = others.length > names.length ? ` and ${others.length - names.length} more` : "";
  throw new CoordinatorError(
    "FAILED_PRECONDITION",
    `the apply would also remove ${names.join(", ")}${more}, which were created after the removals were confirmed; nothing was applied: apply again`,
  );
}

function tooLarge(why: string): CoordinatorError {
  const message = `the request ${why}`;
  return new CoordinatorError("INVALID", message, {
    violations: [{ field: "resources", description: message }],
  });
}

async function findApply(
  request: ApplyResourcesRequest,
  requestHash: string,
  { store, state }: ApplyOptions,
): Promise<ApplyResourcesResponse | undefined> {
  const stored = await store.get(applyKey(request.namespace, request.applyId));
  if (stored === undefined) return undefined;
  const rolloutId = new TextDecoder().decode(stored.value);
  await state.reached(stored.modRevision);
  const rollout = state.rollout(rolloutId);
  if (rollout === undefined || rollout.record.requestHash === requestHash) return { rolloutId };
  throw new CoordinatorError(
    "ALREADY_EXISTS",
    `apply_id "${request.applyId}" was already used with other content (rollout ${rolloutId}); use a new apply_id`,
  );
}

function transaction(
  request: ApplyResourcesRequest,
  items: readonly BundleItem[],
  rolloutId: string,
  requestHash: string,
  { clock, store, by = "", policyRole = "" }: ApplyOptions,
): { compares: Compare[]; ops: Op[] } {
  const nowMs = clock.nowMs();
  const { namespace, applyId } = request;
  const usedKey = applyKey(namespace, applyId);
  const compares: Compare[] = [{ type: "absent", key: usedKey }];
  const ops: Op[] = [{ type: "put", key: usedKey, value: new TextEncoder().encode(rolloutId) }];
  for (const [order, item] of items.entries()) {
    compares.push({ type: "mod-revision", key: item.key, revision: item.existing?.revision ?? 0 });
    if (item.action === "unchanged") continue;
    const record =
      item.action === "remove"
        ? { ...removed(item), deletedBy: by }
        : { ...written(item, request, rolloutId, order, nowMs), changedBy: by, policyRole };
    ops.push({ type: "put", key: item.key, value: encodeRecord(ResourceRecord, record) });
  }
  const rollout = RolloutRecord.fromPartial({
    id: rolloutId,
    namespace,
    applyId,
    requestHash,
    createdAt: toTimestamp(nowMs),
    resources: items.map((item) => {
      const { kind, name, action, specHash } = item;
      return { kind, name, action, specHash, generation: generationOf(item) };
    }),
    finished: items.length === 0,
    storeRevision: BigInt(store.revision),
  });
  ops.push({ type: "put", key: rolloutKey(rolloutId), value: encodeRecord(RolloutRecord, rollout) });
  return { compares, ops };
}

function written(
  item: BundleItem,
  request: ApplyResourcesRequest,
  rolloutId: string,
  order: number,
  nowMs: number,
): Omit<ResourceRecord, "changedBy" | "policyRole"> {
  const { existing, kind, name, specHash, resource } = item;
  return {
    namespace: request.namespace,
    kind,
    name,
    labels: request.labels,
    resource,
    specHash,
    generation: generationOf(item),
    // A resource that was being removed is replaced by a new one with the same name.
    createdAt: (existing?.record.deleting ? undefined : existing?.record.createdAt) ?? toTimestamp(nowMs),
    updatedAt: toTimestamp(nowMs),
    rolloutId,
    order,
    deleting: false,
    restartedAt: existing?.record.restartedAt,
    owner: undefined,
    deletedBy: "",
    pinnedVersions: {},
  };
}

/** Returns the next generation, which grows with each write of the resource. */
function generationOf({ action, existing }: BundleItem): bigint {
  const present = existing?.record.generation ?? 0n;
  return action === "create" || action === "update" ? present + 1n : present;
}

function removed(item: BundleItem): ResourceRecord {
  if (item.existing === undefined)
    throw new TypeError(`${resourceKey("", item.kind, item.name)} is not stored`);
  return { ...item.existing.record, deleting: true };
}
