import type { Log } from "@forage/common/log";
import { ObjectRecord, type RevisionRecord } from "@forage/proto/forage/store/v1/store";
import { encodeRecord } from "../model/codec.ts";
import { objectKey, objectVersionKey, PREFIXES } from "../model/keys.ts";
import { isObjectKind, type ObjectName } from "../model/object-name.ts";
import { pinName } from "../model/pod-refs.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Change } from "../state/entries.ts";
import { ownerOfVersion } from "../state/objects-view.ts";
import type { Compare, Op, Store } from "../store/index.ts";
import type { Clock } from "../time/clock.ts";
import { Loop } from "./loop.ts";
import { tryWrite } from "./write.ts";

export interface ObjectGarbageOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly clock: Clock;
  readonly log: Log;
}

/** The number of versions that are kept for rollbacks. Registry credentials keep only the current one. */
const KEPT_VERSIONS = 10;
/** The limit of deletions in one transaction. The next pass deletes the rest. */
const MAX_DELETES = 100;

/** Removes old versions of configs, secrets and other objects that no pod and no revision refers to. */
export class ObjectGarbage {
  readonly #options: ObjectGarbageOptions;
  readonly #loop: Loop;

  constructor(options: ObjectGarbageOptions) {
    const { state, clock, log } = options;
    this.#options = options;
    this.#loop = new Loop({
      name: "object-garbage",
      reconcile: (key) => this.#collect(key),
      clock,
      log,
      state,
      wakeFor: (changes) => this.#wakeFor(changes),
    });
    for (const { key } of state.objects.list()) this.#loop.wake(key);
    for (const key of state.objects.versionKeys()) {
      const owner = ownerOfVersion(key);
      if (owner !== undefined) this.#loop.wake(objectKey(owner));
    }
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  #wakeFor(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.type === "object") this.#loop.wake((change.after ?? change.before)?.key ?? "");
      if (change.type === "revision" && change.after === undefined) this.#wakeForPins(change.before?.record);
      if (change.type !== "pod" || change.after !== undefined) continue;
      for (const ref of change.before?.refs ?? []) if (ref.env) this.#loop.wake(objectKey(ref));
    }
  }

  #wakeForPins(revision: RevisionRecord | undefined): void {
    for (const name of Object.keys(revision?.objectVersions ?? {}))
      this.#loop.wake(`${PREFIXES.objects}${revision?.namespace}/${name}`);
  }

  async #collect(key: string): Promise<number | undefined> {
    const { state } = this.#options;
    const name = nameOf(key);
    if (name === undefined) return undefined;
    const entry = state.objects.get(name);
    const stored = state.objects.versionsOf(name);
    const kept = keptOf(entry?.record.versions ?? [], pinsOf(name, state), name);
    const garbage = stored.filter((version) => !kept.has(version)).slice(0, MAX_DELETES);
    if (garbage.length === 0) return undefined;
    const compare: Compare =
      entry === undefined ? { type: "absent", key } : { type: "mod-revision", key, revision: entry.revision };
    const ops = garbage.map((version): Op => ({ type: "delete", key: objectVersionKey(name, version) }));
    if (entry !== undefined) {
      const versions = entry.record.versions.filter((version) => !garbage.includes(version));
      ops.push({ type: "put", key, value: encodeRecord(ObjectRecord, { ...entry.record, versions }) });
    }
    await tryWrite({ compares: [compare], ops }, this.#options);
    // There is more to delete, or the object has changed since it was read.
    this.#loop.wake(key);
    return undefined;
  }
}

/** Returns the versions to keep. Pure. */
export function keptOf(
  versions: readonly string[],
  pins: readonly string[],
  { kind }: Pick<ObjectName, "kind">,
): ReadonlySet<string> {
  return new Set([...versions.slice(0, kind === "registry_credential" ? 1 : KEPT_VERSIONS), ...pins]);
}

function pinsOf(name: ObjectName, state: ClusterView): string[] {
  const pin = pinName(name);
  const ofPods = state.podsReferring(name).map(({ record }) => record.template?.objectVersions[pin]);
  const ofRevisions = state.revisions
    .group(`pin:${name.namespace}/${pin}`)
    .map(({ record }) => record.objectVersions[pin]);
  return [...ofPods, ...ofRevisions].filter((version) => version !== undefined);
}

function nameOf(key: string): ObjectName | undefined {
  const [namespace = "", kind = "", name = ""] = key.slice(PREFIXES.objects.length).split("/");
  return isObjectKind(kind) ? { namespace, kind, name } : undefined;
}
