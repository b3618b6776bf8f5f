import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { archiveName } from "./content/object-name.ts";
import type { WorkspaceView } from "./view.ts";

/** Returns the object that a transfer of the instance writes. */
export function transferObject({ id, metadata }: InstanceRecord, transfer: string): string {
  return archiveName({
    owner: metadata?.owner ?? "",
    metaId: metadata?.metaId ?? "",
    instanceId: id,
    transfer,
  });
}

/** The objects of the content store that records refer to. All others are garbage. */
export class NamedObjects {
  readonly #view: WorkspaceView;
  #names: ReadonlySet<string> = new Set();
  #changes = -1;

  constructor(view: WorkspaceView) {
    this.#view = view;
  }

  has(object: string): boolean {
    const { changes } = this.#view;
    // A sweep checks many objects, and the records seldom change during it.
    if (changes !== this.#changes) [this.#names, this.#changes] = [namedObjects(this.#view), changes];
    return this.#names.has(object);
  }
}

function namedObjects(view: WorkspaceView): ReadonlySet<string> {
  const names = new Set<string>();
  const add = (object: string | undefined): void => {
    if (object !== undefined) names.add(object);
  };
  for (const { record } of view.backups()) for (const { archive } of record.generations) add(archive?.object);
  for (const { record } of view.snapshots()) add(record.archive?.object);
  for (const { record } of view.instances()) {
    add(record.restore?.object);
    for (const archive of Object.values(record.archives)) add(archive.object);
    for (const { object } of record.transfers) add(object);
  }
  return names;
}
