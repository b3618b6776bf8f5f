import { ObjectRecord, ObjectVersionRecord } from "@forage/proto/forage/store/v1/store";
import { decodeRecord } from "../model/codec.ts";
import { objectKey, objectVersionKey, PREFIXES, versionsPrefix } from "../model/keys.ts";
import { isObjectKind, type ObjectKind, type ObjectName } from "../model/object-name.ts";
import { type Priority, priorityOf } from "../model/priority.ts";
import { toEpochMs } from "../model/timestamp.ts";
import type { ObjectHistory } from "../model/workload.ts";
import type { StoredRecord } from "../store/index.ts";
import type { ObjectEntry } from "./entries.ts";
import { IndexMap } from "./index-map.ts";

/** The objects that pods refer to, such as secrets, with the versions of their contents, encrypted as in the store. */
export class ObjectsView {
  readonly #objects = new IndexMap<ObjectEntry>(groupsOf);
  readonly #versions = new IndexMap<VersionEntry>(({ owner }) => [owner]);
  readonly #contentBytesByNamespace = new Map<string, number>();
  #contentBytes = 0;

  get(name: ObjectName): ObjectEntry | undefined {
    return this.#objects.get(objectKey(name));
  }

  list(filter: { readonly namespace?: string; readonly kind?: ObjectKind } = {}): ObjectEntry[] {
    const { namespace, kind } = filter;
    const found = namespace !== undefined ? this.#objects.group(`ns:${namespace}`) : this.#objects.values();
    return kind === undefined ? found : found.filter(({ name }) => name.kind === kind);
  }

  version(name: ObjectName, version: string): ObjectVersionRecord | undefined {
    return this.#versions.get(objectVersionKey(name, version))?.record;
  }

  /** Returns the keys of all versions that have a record. */
  versionKeys(): string[] {
    return this.#versions.values().map(({ owner, record }) => owner + record.version);
  }

  /** Returns all versions of the object that have a record, even if the object was deleted. */
  versionsOf(name: ObjectName): string[] {
    return this.#versions.group(versionsPrefix(name)).map(({ record }) => record.version);
  }

  get count(): number {
    return this.#objects.size;
  }

  /** The stored size in bytes of all versions of all contents. */
  get contentBytes(): number {
    return this.#contentBytes;
  }

  /** Returns the stored size in bytes of all versions of contents in one namespace. */
  contentBytesOf(namespace: string): number {
    return this.#contentBytesByNamespace.get(namespace) ?? 0;
  }

  /** Returns the priority of a class. Undefined: there is no such class. */
  priorityOf(className: string): Priority | undefined {
    const classes = this.#objects.group("ns:").flatMap(({ record }) => {
      const { name, spec } = record;
      return spec?.$case === "priorityClass" ? [{ name, record: spec.value }] : [];
    });
    return priorityOf(className, classes);
  }

  /** Returns deleted claims whose data is still on the node. */
  claimRemovals(node: string): ObjectEntry[] {
    return this.#objects.group(`removal:${node}`);
  }

  historyOf(name: ObjectName): ObjectHistory | undefined {
    const record = this.get(name)?.record;
    return record && { versions: record.versions, createdMs: toEpochMs(record.createdAt) ?? 0 };
  }

  apply(
    key: string,
    stored: StoredRecord | undefined,
  ): { readonly before: ObjectEntry | undefined; readonly after: ObjectEntry | undefined } {
    const after = stored && entryOf(key, stored);
    return { before: this.#objects.set(key, after), after };
  }

  applyVersion(key: string, stored: StoredRecord | undefined): void {
    const after = stored && versionEntryOf(key, stored);
    const before = this.#versions.set(key, after);
    const change = (after?.bytes ?? 0) - (before?.bytes ?? 0);
    this.#contentBytes += change;
    const namespace = ownerOfVersion(key)?.namespace ?? "";
    const left = this.contentBytesOf(namespace) + change;
    if (left === 0) this.#contentBytesByNamespace.delete(namespace);
    else this.#contentBytesByNamespace.set(namespace, left);
  }
}

interface VersionEntry {
  /** The prefix of the keys of all versions of its object. */
  readonly owner: string;
  readonly record: ObjectVersionRecord;
  readonly bytes: number;
}

function versionEntryOf(key: string, { value }: StoredRecord): VersionEntry {
  const record = decodeRecord(ObjectVersionRecord, key, value);
  return { owner: key.slice(0, key.lastIndexOf("/") + 1), record, bytes: value.byteLength };
}

function entryOf(key: string, stored: StoredRecord): ObjectEntry | undefined {
  const record = decodeRecord(ObjectRecord, key, stored.value);
  const { namespace, kind, name } = record;
  // Ignores kinds that only a newer version knows.
  if (!isObjectKind(kind)) return undefined;
  return { key, revision: stored.modRevision, name: { namespace, kind, name }, record };
}

function groupsOf({ record }: ObjectEntry): string[] {
  const groups = [`ns:${record.namespace}`];
  if (record.spec?.$case === "claim" && record.spec.value.deleting)
    groups.push(`removal:${record.spec.value.node}`);
  return groups;
}

/** Returns the object and the version of a version's key. */
export function ownerOfVersion(key: string): (ObjectName & { readonly version: string }) | undefined {
  const [namespace = "", kind = "", name = "", version = ""] = key
    .slice(PREFIXES.objectVersions.length)
    .split("/");
  return isObjectKind(kind) ? { namespace, kind, name, version } : undefined;
}
