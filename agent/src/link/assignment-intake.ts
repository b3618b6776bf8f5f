import type { AssignmentDelta, AssignmentSnapshot, PodAssignment } from "@forage/proto/forage/agent/v1/agent";
import type { Clock } from "../clock.ts";
import { type Journal, recordProblem } from "../journal/journal.ts";
import { JournalError } from "../journal/journal-error.ts";
import type { AssignedPods } from "./assigned-pods.ts";
import type { AssignmentReader } from "./assignment-reader.ts";
import { LinkError } from "./link-error.ts";
import { refusedStatus } from "./refused-status.ts";
import type { StatusOutbox } from "./status-outbox.ts";
import { addDelta, fromDelta, fromSnapshot, removedBy, type Unwritten } from "./unwritten.ts";

export interface IntakeOptions {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly pods: AssignedPods;
  readonly reader: AssignmentReader;
  readonly outbox: StatusOutbox;
  /** Called with the reason why assignments can't be written to disk; undefined after a successful write. */
  readonly onHealth: (problem: string | undefined) => void;
  /** Called when a change is on disk and passed to the pods. */
  readonly onTaken: () => void;
}

// Disks rarely get free space quickly. Each try writes all pending changes.
const WRITE_AGAIN_MS = 5_000;

/**
 * Applies the assignments of one connection: first writes them to disk, then passes them to the pods. While the disk
 * can't be written, the connection continues: pods that have to end are ended, new ones are rejected one by one with
 * the reason, and the write is retried.
 */
export class AssignmentIntake {
  readonly #options: IntakeOptions;
  #unwritten: Unwritten | undefined;
  /** The last reported reasons of rejected pods, by uid, so that each reason is sent once. */
  readonly #refused = new Map<string, string>();
  #work: Promise<void> = Promise.resolve();
  #cancelRetry: (() => void) | undefined;
  #closed = false;

  constructor(options: IntakeOptions) {
    this.#options = options;
  }

  /** Applies a snapshot. Rejects with a LinkError if the coordinator's assignments must not be applied. */
  receiveSnapshot(
    snapshot: AssignmentSnapshot,
    clusterId: string,
    lineage: string | undefined,
  ): Promise<void> {
    const pods = this.#withoutRefused(snapshot.pods);
    return this.#enqueue(() => fromSnapshot({ ...snapshot, pods }, clusterId, lineage));
  }

  /** Applies a delta. Rejects with a LinkError if the coordinator's assignments must not be applied. */
  receiveDelta(delta: AssignmentDelta, lineage: string | undefined): Promise<void> {
    const upserts = this.#withoutRefused(delta.upserts);
    return this.#enqueue((held) => {
      // Two connections overlap while a certificate is renewed, so the other one may have delivered this change
      // already.
      if (delta.revision <= (held ?? this.#options.journal).revision) return held;
      const change = { ...delta, upserts };
      return held === undefined ? fromDelta(change, lineage) : addDelta(held, change, lineage);
    });
  }

  /** Returns the pods assigned to this host, without those whose removal is not on disk yet. */
  assigned(): ReadonlyMap<string, PodAssignment> {
    const { journal } = this.#options;
    const held = this.#unwritten;
    if (held === undefined) return journal.desired();
    const removed = new Set(removedBy(held, journal.desired()));
    return new Map(
      [...journal.desired()].filter(([uid]) => !removed.has(uid) && !held.pods.get(uid)?.stopping),
    );
  }

  close(): void {
    this.#closed = true;
    this.#cancelRetry?.();
  }

  #enqueue(merge: (held: Unwritten | undefined) => Unwritten | undefined): Promise<void> {
    const done = this.#work.then(() => {
      this.#unwritten = merge(this.#unwritten);
      return this.#write();
    });
    this.#work = done.catch(() => undefined);
    return done;
  }

  async #write(): Promise<void> {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    const change = this.#unwritten;
    if (change === undefined) return;
    const { journal, onHealth, onTaken } = this.#options;
    try {
      const { revision, lineage, pods, removals } = change;
      if (change.clusterId !== undefined) {
        await journal.replace({ clusterId: change.clusterId, revision, lineage, pods: [...pods.values()] });
      } else if (revision > journal.revision) {
        await journal.apply({ revision, lineage, upserts: [...pods.values()], removals: [...removals] });
      }
    } catch (error) {
      if (!(error instanceof JournalError) || error.code !== "WRITE_FAILED") throw asLinkError(error);
      this.#hold(change, error.message);
      return;
    }
    this.#unwritten = undefined;
    this.#refused.clear();
    onHealth(undefined);
    this.#publish(change);
    onTaken();
  }

  #publish({ clusterId, pods, removals }: Unwritten): void {
    const { journal, reader, pods: assigned } = this.#options;
    reader.keepOnly(journal.desired());
    const read = [...pods.values()].map((it) => reader.read(it));
    if (clusterId !== undefined) assigned.replace(read);
    else assigned.apply(read, [...removals]);
  }

  /**
   * Holds a change that can't be written. Ending a pod needs no record: at worst, an agent that restarts with a full
   * disk runs the pod until it is removed.
   */
  #hold(change: Unwritten, problem: string): void {
    const { clock, journal, reader, pods, onHealth } = this.#options;
    onHealth(problem);
    const ending = [...change.pods.values()].filter(({ stopping }) => stopping);
    pods.apply(
      ending.map((it) => reader.read(it)),
      removedBy(change, journal.desired()),
    );
    for (const pod of change.pods.values()) {
      if (!pod.stopping && !journal.desired().has(pod.uid)) this.#refuse(pod, "JournalNotWritten", problem);
    }
    if (this.#closed) return;
    this.#cancelRetry = clock.schedule(WRITE_AGAIN_MS, () => {
      const written = this.#work.then(() => this.#write());
      // The journal has been changed by another connection, or is closed.
      this.#work = written.catch(() => {
        this.#unwritten = undefined;
      });
    });
  }

  /**
   * Returns the pods that fit into records. Each other pod is rejected separately and stays as it was, so it doesn't
   * block the others.
   */
  #withoutRefused(pods: readonly PodAssignment[]): PodAssignment[] {
    return pods.flatMap((pod) => {
      const problem = recordProblem(pod);
      if (problem === undefined) return [pod];
      const before = this.#options.journal.desired().get(pod.uid);
      if (before === undefined) this.#refuse(pod, "InvalidAssignment", problem);
      return before === undefined ? [] : [before];
    });
  }

  #refuse(pod: PodAssignment, reason: string, message: string): void {
    if (this.#refused.get(pod.uid) === message) return;
    this.#refused.set(pod.uid, message);
    this.#options.outbox.put(refusedStatus(pod, reason, message));
  }
}

function asLinkError(error: unknown): unknown {
  if (!(error instanceof JournalError)) return error;
  switch (error.code) {
    case "OTHER_CLUSTER":
    case "REVISION_WENT_BACK":
      return new LinkError("NOT_OURS", `${error.message}; what runs is left alone`, { cause: error });
    case "INVALID_RECORD":
      return new LinkError("PROTOCOL", error.message, { cause: error });
    case "WRITE_FAILED":
    case "OPEN_FAILED":
    case "CLOSED":
      return new LinkError("DISK", error.message, { cause: error });
    default:
      return error.code satisfies never;
  }
}
