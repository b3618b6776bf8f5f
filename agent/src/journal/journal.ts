import { join } from "node:path";
import { messageOf } from "@forage/common/message-of";
import { PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import { asideOf } from "./durable-files.ts";
import { JournalError } from "./journal-error.ts";
import { hostFiles, type JournalFiles } from "./journal-files.ts";
import { encodeIndex, INDEX_FILE, type JournalIndex, podFileName } from "./journal-index.ts";
import type { JournalKey } from "./journal-key.ts";
import {
  type JournalProblem,
  type LoadedJournal,
  loadJournal,
  PODS_DIRECTORY,
  STATES_DIRECTORY,
  stateFileName,
} from "./load-journal.ts";
import type { PodState } from "./pod-state.ts";
import { encodeRecord, RECORD_KIND } from "./record-frame.ts";
import { StateFiles } from "./state-files.ts";

/** A record contains one pod with its configuration. The coordinator's store accepts no value above 1.5 MiB. */
const MAX_POD_BYTES = 4 * 1024 * 1024;
/** Uids become file names. File systems accept 255 bytes, of which suffixes need some. */
const UID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;

export interface Snapshot {
  readonly clusterId: string;
  /**
   * The coordinator's epoch. If it is higher than before, the operator has restored older data on purpose. Default:
   * unchanged.
   */
  readonly epoch?: bigint;
  readonly revision: bigint;
  /** The lineage of the coordinator's data to which the revision belongs. */
  readonly lineage?: string | undefined;
  readonly pods: readonly PodAssignment[];
}

export interface Delta {
  readonly revision: bigint;
  readonly lineage?: string | undefined;
  readonly upserts: readonly PodAssignment[];
  readonly removals: readonly string[];
}

export interface JournalOptions {
  readonly dir: string;
  readonly key: JournalKey;
  readonly signal: AbortSignal;
  /** Default: the host's disk. */
  readonly files?: JournalFiles;
}

/**
 * The agent's durable records: its assignment and the states of pods. A change is on disk when its promise resolves. A
 * crash at any time leaves a change complete or absent.
 */
export class Journal {
  readonly #dir: string;
  readonly #key: JournalKey;
  readonly #files: JournalFiles;
  readonly #desired: Map<string, PodAssignment>;
  readonly #states: Map<string, PodState>;
  readonly #stateFiles: StateFiles;
  readonly #damaged: Set<string>;
  /** The files that could not be read at open. */
  readonly problems: readonly JournalProblem[];
  #index: JournalIndex;
  #incomplete: boolean;
  #commits: Promise<unknown> = Promise.resolve();
  #closed = false;

  private constructor(dir: string, key: JournalKey, files: JournalFiles, loaded: LoadedJournal) {
    this.#dir = dir;
    this.#key = key;
    this.#files = files;
    this.#index = loaded.index;
    this.#desired = loaded.desired;
    this.#states = loaded.states;
    this.#stateFiles = new StateFiles(join(dir, STATES_DIRECTORY), files);
    this.problems = loaded.problems;
    const lost = loaded.problems.filter((problem) => problem.type === "pod");
    this.#damaged = new Set(lost.flatMap((problem) => problem.uid ?? []));
    this.#incomplete = loaded.problems.some((problem) => problem.type !== "state");
  }

  /**
   * Opens the journal and creates the directory if it is missing. The caller must ensure that only one process has it
   * open.
   */
  static async open(options: JournalOptions): Promise<Journal> {
    const { dir, key, signal, files = hostFiles } = options;
    try {
      const loaded = await loadJournal(dir, key, files, signal);
      const journal = new Journal(dir, key, files, loaded);
      // If the disk can't be written now, the pods must be known nevertheless.
      if (loaded.plain.length > 0) await journal.#encrypt(loaded.plain).catch(() => undefined);
      return journal;
    } catch (cause) {
      options.signal.throwIfAborted();
      throw new JournalError("OPEN_FAILED", `journal ${options.dir}: ${messageOf(cause)}`, { cause });
    }
  }

  desired(): ReadonlyMap<string, PodAssignment> {
    return this.#desired;
  }

  /**
   * Assigned pods whose records could not be read. Nothing of them may be removed before the next snapshot, which
   * empties this set.
   */
  get damaged(): ReadonlySet<string> {
    return this.#damaged;
  }

  /** Empty before the first snapshot. */
  get clusterId(): string {
    return this.#index.clusterId;
  }

  get epoch(): bigint {
    return this.#index.epoch;
  }

  get revision(): bigint {
    return this.#index.revision;
  }

  /** The lineage of the coordinator's data to which the revision belongs. */
  get lineage(): string | undefined {
    return this.#index.lineage;
  }

  /**
   * The revision to report to the coordinator. 0 while records are missing, so that the coordinator sends everything.
   */
  get resumeRevision(): bigint {
    return this.#incomplete ? 0n : this.#index.revision;
  }

  /**
   * Replaces the whole assignment. Rejects with OTHER_CLUSTER, REVISION_WENT_BACK or INVALID_RECORD without a change.
   */
  replace(snapshot: Snapshot): Promise<void> {
    return this.#serially(async () => {
      const epoch = snapshot.epoch ?? this.#index.epoch;
      assertAcceptable(this.#index, { ...snapshot, epoch });
      const pods = byUid(snapshot.pods);
      const removals = [...this.#index.pods.keys()].filter((uid) => !pods.has(uid));
      const { clusterId, revision, lineage } = snapshot;
      const head = { clusterId, epoch, revision, lineage };
      await this.#commit(head, pods, removals);
      this.#damaged.clear();
      this.#incomplete = false;
    });
  }

  /**
   * Applies the changes since the last revision. @throws JournalError REVISION_WENT_BACK for a revision that was
   * already applied.
   */
  apply(delta: Delta): Promise<void> {
    return this.#serially(async () => {
      const { clusterId, epoch, revision } = this.#index;
      if (delta.revision <= revision) {
        const message = `the coordinator sent a change of revision ${delta.revision} after revision ${revision}`;
        throw new JournalError("REVISION_WENT_BACK", message);
      }
      await this.#commit(
        { clusterId, epoch, revision: delta.revision, lineage: delta.lineage },
        byUid(delta.upserts),
        delta.removals,
      );
    });
  }

  state(uid: string): PodState | undefined {
    return this.#states.get(uid);
  }

  /** Returns the states of all pods, including pods that are no longer desired and not yet removed. */
  states(): ReadonlyMap<string, PodState> {
    return this.#states;
  }

  /** Returns the path of a pod's state on disk. */
  stateFile(uid: string): string {
    return join(this.#dir, STATES_DIRECTORY, stateFileName(uid));
  }

  /**
   * Saves the pod's state. `states()` returns it at once. The promise resolves when this or a later state of the pod is
   * on disk.
   */
  async saveState(uid: string, state: PodState): Promise<void> {
    this.#assertOpen();
    assertUid(uid);
    this.#states.set(uid, state);
    await this.#stateFiles.write(uid, state).catch(writeFailed);
  }

  /** Removes the pod's state, and its assignment if there is one. Ignores unknown uids. */
  async remove(uid: string): Promise<void> {
    this.#assertOpen();
    const state = this.#states.get(uid);
    if (state !== undefined) {
      this.#states.delete(uid);
      await this.#stateFiles.write(uid, undefined).catch((error) => {
        // The state is still on disk, so keep it for a later call to remove.
        if (!this.#states.has(uid)) this.#states.set(uid, state);
        writeFailed(error);
      });
    }
    await this.#files.remove(asideOf(this.stateFile(uid))).catch(writeFailed);
    await this.#serially(async () => {
      if (this.#index.pods.has(uid)) await this.#commit(this.#index, new Map(), [uid]);
    });
  }

  /**
   * Removes the pod's assignment without writing anything, so it works on a full disk. The pod counts as damaged from
   * then on, also after a restart: it is not started before the next snapshot. Ignores unknown uids.
   */
  removeRecord(uid: string): Promise<void> {
    return this.#serially(async () => {
      const generation = this.#index.pods.get(uid);
      if (generation === undefined) return;
      const dir = join(this.#dir, PODS_DIRECTORY);
      await this.#files.remove(join(dir, podFileName(uid, generation))).catch(writeFailed);
      await this.#files.sync(dir).catch(writeFailed);
      this.#desired.delete(uid);
      this.#damaged.add(uid);
      this.#incomplete = true;
    });
  }

  /** Resolves when all changes are written. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#commits.catch(() => undefined);
    await this.#stateFiles.settle();
  }

  /** Encrypts records that an older agent wrote in plain text. */
  #encrypt(uids: readonly string[]): Promise<void> {
    return this.#serially(async () => {
      const pods = [...this.#desired].filter(([uid]) => uids.includes(uid));
      await this.#commit(this.#index, new Map(pods), [], { rewrite: true });
    });
  }

  #serially<Result>(run: () => Promise<Result>): Promise<Result> {
    const result = this.#commits.then(() => {
      this.#assertOpen();
      return run();
    });
    this.#commits = result.catch(() => undefined);
    return result;
  }

  /** Writes new files first, then the index that refers to them, and then removes the old files. */
  async #commit(
    head: Pick<JournalIndex, "clusterId" | "epoch" | "revision" | "lineage">,
    upserts: ReadonlyMap<string, PodAssignment>,
    removals: readonly string[],
    { rewrite } = { rewrite: false },
  ): Promise<void> {
    const generation = this.#index.generation + 1;
    const pods = new Map(this.#index.pods);
    const changed = new Map<string, Uint8Array>();
    for (const [uid, pod] of upserts) {
      const bytes = encodePod(pod);
      if (!rewrite && this.#holds(uid, bytes)) continue;
      pods.set(uid, generation);
      changed.set(uid, bytes);
    }
    for (const uid of removals) pods.delete(uid);
    const { clusterId, epoch, revision, lineage } = head;
    const index: JournalIndex = { clusterId, epoch, revision, lineage, generation, pods };
    // Counted even if the commit fails, so that files of a half-written generation are never overwritten.
    const previous = this.#index;
    this.#index = { ...previous, generation };
    try {
      const files = await this.#sealed(changed, generation);
      if (files.length > 0) await this.#files.write(join(this.#dir, PODS_DIRECTORY), files);
      await this.#files.write(this.#dir, [{ name: INDEX_FILE, bytes: encodeIndex(index) }]);
    } catch (cause) {
      writeFailed(cause);
    }
    this.#index = index;
    for (const uid of removals) this.#desired.delete(uid);
    for (const uid of removals) this.#damaged.delete(uid);
    for (const [uid, pod] of upserts) if (pods.has(uid)) this.#desired.set(uid, pod);
    await this.#removeSuperseded(previous.pods, pods);
  }

  async #sealed(pods: ReadonlyMap<string, Uint8Array>, generation: number) {
    const files: { name: string; bytes: Buffer }[] = [];
    for (const [uid, bytes] of pods) {
      const record = encodeRecord(RECORD_KIND.sealedPod, await this.#key.seal(uid, bytes));
      files.push({ name: podFileName(uid, generation), bytes: record });
    }
    return files;
  }

  #holds(uid: string, bytes: Uint8Array): boolean {
    const held = this.#desired.get(uid);
    return held !== undefined && Buffer.compare(PodAssignment.encode(held).finish(), bytes) === 0;
  }

  // The index no longer names these files, so a failure only costs some space until the next open.
  async #removeSuperseded(
    before: ReadonlyMap<string, number>,
    now: ReadonlyMap<string, number>,
  ): Promise<void> {
    const superseded = [...before].filter(([uid, generation]) => now.get(uid) !== generation);
    const paths = superseded.map(([uid, generation]) =>
      join(this.#dir, PODS_DIRECTORY, podFileName(uid, generation)),
    );
    await Promise.allSettled(paths.map((path) => this.#files.remove(path)));
  }

  #assertOpen(): void {
    if (this.#closed) throw new JournalError("CLOSED", "the journal is closed");
  }
}

function assertAcceptable(index: JournalIndex, snapshot: Snapshot & { epoch: bigint }): void {
  if (snapshot.clusterId === "") throw new JournalError("INVALID_RECORD", "the snapshot names no cluster");
  if (index.clusterId !== "" && snapshot.clusterId !== index.clusterId) {
    throw new JournalError(
      "OTHER_CLUSTER",
      `this host's pods belong to cluster ${index.clusterId}, but the coordinator belongs to ${snapshot.clusterId}`,
    );
  }
  const older =
    snapshot.epoch < index.epoch || (snapshot.epoch === index.epoch && snapshot.revision < index.revision);
  if (index.clusterId !== "" && older) {
    throw new JournalError(
      "REVISION_WENT_BACK",
      `the coordinator is at revision ${snapshot.revision} (epoch ${snapshot.epoch}), but had sent ` +
        `revision ${index.revision} (epoch ${index.epoch}): it runs on older data`,
    );
  }
}

/** Returns the reason why a pod can't be stored in the journal; undefined if it can. */
export function recordProblem(pod: PodAssignment): string | undefined {
  try {
    assertUid(pod.uid);
    encodePod(pod);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

function byUid(pods: readonly PodAssignment[]): Map<string, PodAssignment> {
  const found = new Map<string, PodAssignment>();
  for (const pod of pods) {
    assertUid(pod.uid);
    if (found.has(pod.uid)) throw new JournalError("INVALID_RECORD", `pod ${pod.uid} is given twice`);
    found.set(pod.uid, pod);
  }
  return found;
}

function assertUid(uid: string): void {
  if (!UID.test(uid)) throw new JournalError("INVALID_RECORD", `${JSON.stringify(uid)} can't be a pod's uid`);
}

function encodePod(pod: PodAssignment): Uint8Array {
  const bytes = PodAssignment.encode(pod).finish();
  if (bytes.byteLength <= MAX_POD_BYTES) return bytes;
  throw new JournalError(
    "INVALID_RECORD",
    `pod ${pod.uid} has ${bytes.byteLength} bytes, more than ${MAX_POD_BYTES}`,
  );
}

function writeFailed(cause: unknown): never {
  throw new JournalError("WRITE_FAILED", `the journal could not be written: ${messageOf(cause)}`, { cause });
}
