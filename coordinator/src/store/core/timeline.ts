import { type PackedBytes, packBytes } from "../packed-bytes.ts";
import type { LeaseId, Revision } from "../store.ts";
import { KeyIndex } from "./key-index.ts";

/** One version of a key. A tombstone (deleted key) has no value, and 0 as createRevision and version. */
export interface Version {
  readonly key: string;
  readonly value: PackedBytes | undefined;
  readonly createRevision: Revision;
  readonly modRevision: Revision;
  readonly version: number;
  readonly lease: LeaseId | undefined;
  /** The key's previous version, if it is in the history. */
  older: Version | undefined;
}

/** All changes of one revision, in the order of its operations. */
export interface Commit {
  readonly revision: Revision;
  readonly changes: readonly Version[];
  /** The approximate size of keys and values in bytes. */
  readonly bytes: number;
}

export type Change =
  | {
      readonly type: "put";
      readonly key: string;
      readonly value: Uint8Array;
      readonly lease: LeaseId | undefined;
    }
  | { readonly type: "delete"; readonly key: string };

export interface Succession {
  readonly before: Version | undefined;
  readonly after: Version;
}

export interface RangeQuery {
  readonly prefix: string;
  readonly at: Revision;
  readonly after: string;
  readonly limit: number;
}

/**
 * Holds the versions of all keys since the last compaction. It doesn't track durability: the head may be ahead of the disk,
 * so readers name the revision to read at.
 */
export class Timeline {
  readonly #keys = new KeyIndex();
  readonly #latest = new Map<string, Version>();
  /** The commits after the compacted revision, oldest first. */
  #commits: Commit[] = [];
  #compactRevision: Revision;
  #historyBytes = 0;

  constructor(base: Iterable<Version> = [], revision: Revision = 0) {
    this.#compactRevision = revision;
    for (const version of base) {
      this.#latest.set(version.key, version);
      this.#keys.add(version.key);
    }
  }

  get head(): Revision {
    return this.#compactRevision + this.#commits.length;
  }

  get compactRevision(): Revision {
    return this.#compactRevision;
  }

  /** The approximate size in bytes of the commits after the compacted revision. */
  get historyBytes(): number {
    return this.#historyBytes;
  }

  /** Returns the key's version at the revision. Undefined if the key did not exist. */
  read(key: string, at: Revision): Version | undefined {
    const version = versionAt(this.#latest.get(key), at);
    return version?.value === undefined ? undefined : version;
  }

  /** Returns at most limit + 1 versions. The extra one shows that there are more. */
  range({ prefix, at, after, limit }: RangeQuery): Version[] {
    const found: Version[] = [];
    for (const key of this.#keys.keys(prefix, after)) {
      const version = this.read(key, at);
      if (version === undefined) continue;
      found.push(version);
      if (found.length > limit) break;
    }
    return found;
  }

  /** Appends the changes as the next revision. */
  append(changes: readonly Change[]): Commit {
    const revision = this.head + 1;
    let bytes = 0;
    const versions = changes.map((change) => {
      const version = nextVersion(change, this.#latest.get(change.key), revision);
      bytes += sizeOf(version);
      return version;
    });
    return this.#push({ revision, changes: versions, bytes });
  }

  /** Appends a commit that was written earlier. It must be the next revision. */
  replay(revision: Revision, versions: readonly Version[]): Commit {
    if (revision !== this.head + 1) throw new Error(`revision ${revision} does not follow ${this.head}`);
    let bytes = 0;
    for (const version of versions) {
      version.older = this.#latest.get(version.key);
      bytes += sizeOf(version);
    }
    return this.#push({ revision, changes: versions, bytes });
  }

  /** Returns the commit of the revision. Undefined if it is compacted or in the future. */
  commit(revision: Revision): Commit | undefined {
    return this.#commits[revision - this.#compactRevision - 1];
  }

  /** Returns the lowest revision up to `until` to which the history has to be compacted to stay within the limits. */
  trimTarget(until: Revision, revisionsMax: number, bytesMax: number): Revision {
    let target = Math.max(this.#compactRevision, until - revisionsMax);
    let bytes = this.#historyBytes;
    for (const commit of this.#commits) {
      if (commit.revision > until) break;
      if (commit.revision > target && bytes <= bytesMax) break;
      bytes -= commit.bytes;
      target = Math.max(target, commit.revision);
    }
    return target;
  }

  /**
   * Returns the latest revision up to `through` such that the commits up to it don't exceed the size, but at least one
   * commit.
   */
  foldTarget(through: Revision, bytesMax: number): Revision {
    let bytes = 0;
    for (const commit of this.#commits) {
      bytes += commit.bytes;
      const first = commit.revision === this.#compactRevision + 1;
      if (commit.revision > through || (bytes > bytesMax && !first)) return commit.revision - 1;
    }
    return this.head;
  }

  /** Returns, for each key changed between the compacted revision and this one, its versions at both. */
  changed(through: Revision): Map<string, Succession> {
    const result = new Map<string, Succession>();
    for (const commit of this.#commits) {
      if (commit.revision > through) break;
      for (const change of commit.changes) {
        const known = result.get(change.key);
        // The previous version of a key's first change is its version at the compacted revision.
        result.set(change.key, { before: known === undefined ? change.older : known.before, after: change });
      }
    }
    return result;
  }

  /** Removes versions that are only visible before the revision. */
  compact(revision: Revision): void {
    const dropped = this.#commits.splice(0, revision - this.#compactRevision);
    this.#compactRevision = revision;
    for (const commit of dropped) {
      this.#historyBytes -= commit.bytes;
      for (const change of commit.changes) {
        // No reader can see versions that are older than one that is visible to all readers.
        change.older = undefined;
        if (change.value === undefined && this.#latest.get(change.key) === change) {
          this.#latest.delete(change.key);
          this.#keys.delete(change.key);
        }
      }
    }
  }

  #push(commit: Commit): Commit {
    for (const version of commit.changes) {
      if (version.older === undefined) this.#keys.add(version.key);
      this.#latest.set(version.key, version);
    }
    this.#commits.push(commit);
    this.#historyBytes += commit.bytes;
    return commit;
  }
}

function versionAt(latest: Version | undefined, at: Revision): Version | undefined {
  let version = latest;
  while (version !== undefined && version.modRevision > at) version = version.older;
  return version;
}

function nextVersion(change: Change, previous: Version | undefined, revision: Revision): Version {
  const older = previous;
  if (change.type === "delete") {
    const { key } = change;
    return {
      key,
      value: undefined,
      createRevision: 0,
      modRevision: revision,
      version: 0,
      lease: undefined,
      older,
    };
  }
  const existed = previous?.value !== undefined;
  return {
    key: change.key,
    value: packBytes(change.value),
    createRevision: existed ? previous.createRevision : revision,
    modRevision: revision,
    version: existed ? previous.version + 1 : 1,
    lease: change.lease,
    older,
  };
}

function sizeOf(version: Version): number {
  return VERSION_OVERHEAD_BYTES + version.key.length + (version.value?.length ?? 0);
}

/** The size of a version apart from its key and value, so that empty values count too. */
const VERSION_OVERHEAD_BYTES = 200;
