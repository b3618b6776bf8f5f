import type { Log } from "@forage/common/log";
import {
  ActivityRecord,
  BackupRecord,
  InstanceRecord,
  InstanceSecretsRecord,
  LiveRecord,
  SnapshotRecord,
} from "@forage/proto/forage/workspaces/v1/records";
import { Listeners } from "../state/listeners.ts";
import { type RecordEntry, RecordView } from "../state/record-view.ts";
import type { Store, StoredRecord, WatchEvent } from "../store/index.ts";
import {
  activityKey,
  backupKey,
  instanceKey,
  liveKey,
  secretsKey,
  snapshotKey,
  WORKSPACE_PREFIXES,
  WORKSPACES_PREFIX,
} from "./keys.ts";

export type InstanceEntry = RecordEntry<InstanceRecord>;

/** One record of an instance that changed. */
export interface InstanceChange {
  readonly id: string;
  /** `instance` may change the published status; `activity` does not. */
  readonly type: "instance" | "activity";
  readonly before: InstanceEntry | undefined;
  readonly after: InstanceEntry | undefined;
}

/** The number of records that one read at the start returns. */
const PAGE_SIZE = 1_000;

/**
 * Holds the records of workspaces in memory, with indexes. It changes only through events of the
 * store's watch.
 */
export class WorkspaceView {
  readonly #instances = new RecordView<InstanceRecord>(InstanceRecord, ({ podName, node, servicePrefix }) => [
    ...(servicePrefix === "" ? [] : [`prefix:${servicePrefix.toLowerCase()}`]),
    ...(podName === "" ? [] : [`pod:${podName}`]),
    ...(node === "" ? [] : [`node:${node}`]),
  ]);
  readonly #secrets = new RecordView<InstanceSecretsRecord>(InstanceSecretsRecord);
  readonly #activity = new RecordView<ActivityRecord>(ActivityRecord);
  readonly #live = new RecordView<LiveRecord>(LiveRecord);
  readonly #backups = new RecordView<BackupRecord>(BackupRecord);
  readonly #snapshots = new RecordView<SnapshotRecord>(SnapshotRecord);
  readonly #listeners: Listeners<readonly InstanceChange[]>;
  readonly #log: Log;
  #waiters: { readonly revision: number; readonly resolve: () => void }[] = [];
  #revision = 0;
  #changes = 0;

  constructor(log: Log) {
    this.#log = log;
    this.#listeners = new Listeners((err) => log.error({ event: "workspace-listener-failed", err }));
  }

  /**
   * Fills the view. Returns it with a function that keeps it up to date until the signal aborts.
   */
  static async load(
    store: Store,
    log: Log,
  ): Promise<{ view: WorkspaceView; follow: (signal: AbortSignal) => Promise<void> }> {
    const view = new WorkspaceView(log);
    const at = store.revision;
    for (let after: string | undefined, more = true; more; ) {
      const page = await store.range(WORKSPACES_PREFIX, {
        at,
        limit: PAGE_SIZE,
        ...(after !== undefined && { after }),
      });
      for (const record of page.records) view.#apply(record.key, record);
      after = page.records.at(-1)?.key;
      more = page.more;
    }
    view.#revision = at;
    const follow = async (signal: AbortSignal): Promise<void> => {
      // The watch covers all keys, so that `reached` also works for writers of other records.
      for await (const batch of store.watch("", at + 1, signal)) view.apply(batch.events, batch.revision);
    };
    return { view, follow };
  }

  /** A counter that grows with each change of a record. */
  get changes(): number {
    return this.#changes;
  }

  instance(id: string): InstanceEntry | undefined {
    return this.#instances.get(instanceKey(id));
  }

  instances(): InstanceEntry[] {
    return this.#instances.all();
  }

  get count(): number {
    return this.#instances.size;
  }

  instancesOnNode(node: string): InstanceEntry[] {
    return this.#instances.group(`node:${node}`);
  }

  /** Returns the instances whose URL has the prefix, which is compared in lower case. */
  instancesByPrefix(prefix: string): InstanceEntry[] {
    return this.#instances.group(`prefix:${prefix}`);
  }

  instanceOfPod(podName: string): InstanceEntry | undefined {
    return this.#instances.group(`pod:${podName}`)[0];
  }

  secrets(id: string): InstanceSecretsRecord | undefined {
    return this.#secrets.get(secretsKey(id))?.record;
  }

  activity(id: string): RecordEntry<ActivityRecord> | undefined {
    return this.#activity.get(activityKey(id));
  }

  live(metaId: string): RecordEntry<LiveRecord> | undefined {
    return this.#live.get(liveKey(metaId));
  }

  get liveCount(): number {
    return this.#live.size;
  }

  backup(owner: string, metaId: string): RecordEntry<BackupRecord> | undefined {
    return this.#backups.get(backupKey({ owner, metaId }));
  }

  backups(): RecordEntry<BackupRecord>[] {
    return this.#backups.all();
  }

  snapshot(url: string): RecordEntry<SnapshotRecord> | undefined {
    return this.#snapshots.get(snapshotKey(url));
  }

  snapshots(): RecordEntry<SnapshotRecord>[] {
    return this.#snapshots.all();
  }

  /** The number of listeners that `subscribe` has added and that have not stopped. */
  get listenerCount(): number {
    return this.#listeners.size;
  }

  /**
   * Calls the listener after each revision with the instances that it changed. Returns a function
   * that ends the subscription.
   */
  subscribe(listener: (changes: readonly InstanceChange[]) => void): () => void {
    return this.#listeners.add(listener);
  }

  /** Resolves once the view contains the revision. */
  reached(revision: number): Promise<void> {
    if (this.#revision >= revision) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push({ revision, resolve }));
  }

  apply(events: readonly WatchEvent[], revision: number): void {
    const changes = events.flatMap((event) =>
      event.type === "put" ? this.#apply(event.record.key, event.record) : this.#apply(event.key, undefined),
    );
    this.#revision = Math.max(this.#revision, revision);
    if (changes.length > 0) this.#listeners.call(changes);
    const due = this.#waiters.filter((waiter) => waiter.revision <= this.#revision);
    if (due.length === 0) return;
    this.#waiters = this.#waiters.filter((waiter) => waiter.revision > this.#revision);
    for (const waiter of due) waiter.resolve();
  }

  /** Applies an event. If the new record can't be decoded, the last decoded one stays. */
  #apply(key: string, stored: StoredRecord | undefined): InstanceChange[] {
    if (!key.startsWith(WORKSPACES_PREFIX)) return [];
    this.#changes += 1;
    try {
      return this.#applyRecord(key, stored);
    } catch (err) {
      this.#log.error({ event: "workspace-record-unreadable", key, err });
      return [];
    }
  }

  #applyRecord(key: string, stored: StoredRecord | undefined): InstanceChange[] {
    const { instances, secrets, activity, live, backups, snapshots } = WORKSPACE_PREFIXES;
    if (key.startsWith(instances)) {
      const id = key.slice(instances.length);
      return [{ id, type: "instance", ...this.#instances.apply(key, stored) }];
    }
    if (key.startsWith(activity)) {
      const id = key.slice(activity.length);
      this.#activity.apply(key, stored);
      const entry = this.instance(id);
      return [{ id, type: "activity", before: entry, after: entry }];
    }
    if (key.startsWith(secrets)) this.#secrets.apply(key, stored);
    else if (key.startsWith(live)) this.#live.apply(key, stored);
    else if (key.startsWith(backups)) this.#backups.apply(key, stored);
    else if (key.startsWith(snapshots)) this.#snapshots.apply(key, stored);
    return [];
  }
}
