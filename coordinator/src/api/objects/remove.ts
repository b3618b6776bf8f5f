import { ObjectRecord } from "@forage/proto/forage/store/v1/store";
import { CoordinatorError } from "../../errors.ts";
import { encodeRecord } from "../../model/codec.ts";
import { type ObjectName, titleOf } from "../../model/object-name.ts";
import { BUILT_IN_CLASSES } from "../../model/priority.ts";
import type { ClusterView } from "../../state/cluster-view.ts";
import type { ObjectEntry } from "../../state/entries.ts";
import type { Op, Store } from "../../store/index.ts";

const MAX_TRIES = 8;
/** The largest number of users that an error names. */
const MAX_NAMED = 5;

export interface RemoveOptions {
  readonly store: Store;
  readonly state: ClusterView;
}

/**
 * Removes an object. Returns true if it is a claim whose node has yet to remove the data. Versions of contents are removed
 * once no pod is pinned to them.
 */
export async function removeObject(name: ObjectName, { store, state }: RemoveOptions): Promise<boolean> {
  if (name.kind === "priority_class" && Object.hasOwn(BUILT_IN_CLASSES, name.name))
    throw new CoordinatorError("FAILED_PRECONDITION", `${titleOf(name)} is built in`);
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const entry = state.objects.get(name);
    if (entry === undefined) throw notFound(name);
    assertUnused(name, state);
    const op = removal(entry, state);
    if (op === undefined) return true;
    const compare = { type: "mod-revision", key: entry.key, revision: entry.revision } as const;
    const result = await store.txn([compare], [op]);
    await state.reached(result.revision);
    if (result.succeeded) return op.type === "put";
  }
  throw new CoordinatorError("CONFLICT", `other requests changed ${titleOf(name)} repeatedly; try again`);
}

export function notFound(name: ObjectName): CoordinatorError {
  const where = name.namespace === "" ? "" : ` in namespace "${name.namespace}"`;
  return new CoordinatorError("NOT_FOUND", `there is no ${titleOf(name)}${where}`);
}

/** Returns the write that removes the object. Undefined if the claim's node is already ordered to remove it. */
function removal({ key, record }: ObjectEntry, state: ClusterView): Op | undefined {
  if (record.spec?.$case !== "claim") return { type: "delete", key };
  const { node, deleting } = record.spec.value;
  if (node === "" || state.node(node) === undefined) return { type: "delete", key };
  if (deleting) return undefined;
  const spec = { ...record.spec, value: { ...record.spec.value, deleting: true } };
  return { type: "put", key, value: encodeRecord(ObjectRecord, { ...record, spec }) };
}

function assertUnused(name: ObjectName, state: ClusterView): void {
  const resources = state
    .resourcesReferring(name)
    .filter(({ record }) => !record.deleting)
    .map(({ record }) => `${record.namespace}/${record.kind}/${record.name}`);
  const pods =
    name.kind === "claim" ? state.podsReferring(name).map(({ record }) => `pod ${record.name}`) : [];
  const users = [...resources, ...pods];
  if (users.length === 0) return;
  const more = users.length > MAX_NAMED ? ` and ${users.length - MAX_NAMED} more` : "";
  throw new CoordinatorError(
    "FAILED_PRECONDITION",
    `${titleOf(name)} is in use by ${users.slice(0, MAX_NAMED).join(", ")}${more}; nothing was deleted`,
  );
}
