import { ObjectRecord, ObjectVersionRecord } from "@forage/proto/forage/store/v1/store";
import { CoordinatorError } from "../../errors.ts";
import { encodeRecord } from "../../model/codec.ts";
import { objectKey, objectVersionKey } from "../../model/keys.ts";
import { sameLabels } from "../../model/labels.ts";
import { titleOf } from "../../model/object-name.ts";
import { toTimestamp } from "../../model/timestamp.ts";
import type { Vault } from "../../objects/vault.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ObjectEntry } from "../../state/entries.ts";
import type { Op, Store } from "../../store/index.ts";
import type { Clock } from "../../time/clock.ts";
import type { ObjectDraft } from "./draft.ts";

export interface PutOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly vault: Vault;
}

export type PutAction = "created" | "changed" | "unchanged";

const MAX_TRIES = 8;
/** The limit in bytes of all contents with their versions, because they are in memory. */
const MAX_TOTAL_BYTES = 256 * 1024 * 1024;
const MAX_OBJECTS = 20_000;
/** The limit for one namespace. Its quota counts only the newest versions. */
const MAX_NAMESPACE_BYTES = MAX_TOTAL_BYTES / 4;

/** Stores the object, unless that would change nothing. */
export async function putObject(
  draft: ObjectDraft,
  createOnly: boolean,
  options: PutOptions,
): Promise<PutAction> {
  const { store, state, vault, clock } = options;
  const key = objectKey(draft.name);
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const { existing, record, version, action } = preparePut(draft, options);
    if (existing !== undefined && createOnly)
      throw new CoordinatorError("ALREADY_EXISTS", `${titleOf(draft.name)} exists already`);
    if (action === "unchanged") return action;
    const ops: Op[] = [{ type: "put", key, value: encodeRecord(ObjectRecord, record) }];
    if (draft.content !== undefined) {
      const stored = vault.record(draft.name, draft.content, version, clock.nowMs());
      ops.push({
        type: "put",
        key: objectVersionKey(draft.name, version),
        value: encodeRecord(ObjectVersionRecord, stored),
      });
    }
    const compare = { type: "mod-revision", key, revision: existing?.revision ?? 0 } as const;
    const result = await store.txn([compare], ops);
    await state.reached(result.revision);
    if (result.succeeded) return action;
  }
  throw new CoordinatorError(
    "CONFLICT",
    `other requests changed ${titleOf(draft.name)} repeatedly; try again`,
  );
}

export interface PreparedPut {
  readonly existing: ObjectEntry | undefined;
  readonly record: ObjectRecord;
  /** The version of the content. Empty if the object has none. */
  readonly version: string;
  readonly action: PutAction;
}

/**
 * Returns the write that a put of the object would make, without storing it. Throws if the object can't be changed as
 * requested.
 */
export function preparePut(
  draft: ObjectDraft,
  { state, vault, clock }: Omit<PutOptions, "store">,
): PreparedPut {
  const version = draft.content === undefined ? "" : vault.versionOf(draft.name, draft.content);
  const existing = state.objects.get(draft.name);
  assertMayBecome(draft, existing, state);
  const record = recordOf(draft, version, existing, clock.nowMs());
  if (existing !== undefined && same(existing.record, record))
    return { existing, record, version, action: "unchanged" };
  if (existing === undefined || existing.record.versions[0] !== version)
    assertRoom(draft.name.namespace, state);
  return { existing, record, version, action: existing === undefined ? "created" : "changed" };
}

function recordOf(
  { name, labels, content, spec }: ObjectDraft,
  version: string,
  existing: ObjectEntry | undefined,
  nowMs: number,
): ObjectRecord {
  const before = existing?.record;
  const older = (before?.versions ?? []).filter((it) => it !== version);
  const sizes = Object.entries(content ?? {}).map(([key, value]) => [key, value.byteLength]);
  return {
    ...name,
    labels: { ...labels },
    createdAt: before?.createdAt ?? toTimestamp(nowMs),
    updatedAt: toTimestamp(nowMs),
    generation: (before?.generation ?? 0n) + 1n,
    versions: content === undefined ? [] : [version, ...older],
    sizes: Object.fromEntries(sizes),
    spec: spec?.$case === "claim" ? { ...spec, value: { ...spec.value, node: nodeOf(existing) } } : spec,
  };
}

/** Returns the node of a claim, which stays where its data is. */
function nodeOf(existing: ObjectEntry | undefined): string {
  const spec = existing?.record.spec;
  return spec?.$case === "claim" ? spec.value.node : "";
}

function same(a: ObjectRecord, b: ObjectRecord): boolean {
  if (a.versions[0] !== b.versions[0] || !sameLabels(a.labels, b.labels)) return false;
  return Buffer.compare(encodedSpec(a), encodedSpec(b)) === 0;
}

/** Returns bytes that are equal for equal specifications, independent of the order of their properties. */
function encodedSpec({ spec }: ObjectRecord): Uint8Array {
  return ObjectRecord.encode({ ...ObjectRecord.create(), spec }).finish();
}

function assertMayBecome(draft: ObjectDraft, existing: ObjectEntry | undefined, state: ClusterView): void {
  const [before, after] = [existing?.record.spec, draft.spec];
  if (before?.$case === "claim" && after?.$case === "claim") {
    if (before.value.deleting)
      throw new CoordinatorError(
        "FAILED_PRECONDITION",
        `${titleOf(draft.name)} was deleted and its data is being removed from node ${before.value.node}; try again when that is done`,
      );
    if (before.value.node !== "" && before.value.capacityBytes !== after.value.capacityBytes)
      throw invalid("claim.capacity", `can't be changed: the claim is on node ${before.value.node}`);
  }
  if (after?.$case !== "priorityClass") return;
  if (before?.$case === "priorityClass" && before.value.value !== after.value.value)
    throw invalid("priority_class.value", "can't be changed: make another class");
  const other = state.objects.list({ kind: "priority_class" }).find(({ name, record }) => {
    return (
      name.name !== draft.name.name &&
      record.spec?.$case === "priorityClass" &&
      record.spec.value.globalDefault
    );
  });
  if (after.value.globalDefault && other !== undefined)
    throw invalid("priority_class.global_default", `is set on ${titleOf(other.name)} already`);
}

function invalid(field: string, description: string): CoordinatorError {
  const path = `object.${field}`;
  return new CoordinatorError("INVALID", `${path}: ${description}`, {
    violations: [{ field: path, description }],
  });
}

function assertRoom(namespace: string, { objects }: ClusterView): void {
  const own = objects.contentBytesOf(namespace);
  if (own > MAX_NAMESPACE_BYTES)
    throw new CoordinatorError(
      "RESOURCE_EXHAUSTED",
      `secrets and config maps of namespace "${namespace}" hold ${own} bytes with their versions, at most ${MAX_NAMESPACE_BYTES} are kept: delete what isn't used, or replace the pods that use older versions`,
    );
  if (objects.contentBytes > MAX_TOTAL_BYTES)
    throw new CoordinatorError(
      "RESOURCE_EXHAUSTED",
      `secrets and config maps hold ${objects.contentBytes} bytes with their versions, at most ${MAX_TOTAL_BYTES} are kept: delete what isn't used`,
    );
  if (objects.count > MAX_OBJECTS)
    throw new CoordinatorError(
      "RESOURCE_EXHAUSTED",
      `there are ${MAX_OBJECTS} objects: delete what isn't used`,
    );
}
