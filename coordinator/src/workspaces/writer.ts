import type { InstanceRecord } from "@forage/proto/forage/workspaces/v1/records";
import { CoordinatorError } from "../errors.ts";
import type { ClusterView } from "../state/cluster-view.ts";
import type { Compare, Op, Store } from "../store/index.ts";
import { instanceKey } from "./keys.ts";
import { instanceWrite } from "./records.ts";
import type { InstanceEntry, WorkspaceView } from "./view.ts";

export interface WriterOptions {
  readonly store: Store;
  readonly state: ClusterView;
  readonly view: WorkspaceView;
  readonly epoch: number;
}

/** Additional compares and operations of a transaction that changes an instance. */
export interface ExtraWrites {
  readonly compares?: readonly Compare[];
  readonly ops?: readonly Op[];
}

/**
 * The most attempts of an update. Concurrent changes of one record are rare, and each attempt reads
 * the change that made the last one fail.
 */
const MAX_TRIES = 10;

/** Writes the records of instances, each only if it has not changed since it was read. */
export class WorkspaceWriter {
  readonly #options: WriterOptions;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** Stores a changed record. Returns false without any change if a compare fails. */
  async replace(
    before: InstanceEntry,
    after: InstanceRecord,
    { compares = [], ops = [] }: ExtraWrites = {},
  ): Promise<boolean> {
    const own = { type: "mod-revision", key: before.key, revision: before.revision } as const;
    const changed = after === before.record ? [] : [instanceWrite(before.record, after, this.#options.epoch)];
    return this.transact([own, ...compares], [...changed, ...ops]);
  }

  /** Runs one transaction, and waits until the cluster view and the workspace view contain it. */
  async transact(compares: readonly Compare[], ops: readonly Op[]): Promise<boolean> {
    if (ops.length === 0) return true;
    const { store, view, state } = this.#options;
    const { revision, succeeded } = await store.txn(compares, ops);
    await Promise.all([view.reached(revision), state.reached(revision)]);
    return succeeded;
  }

  /**
   * Changes an instance, and tries again after a concurrent change. `change` returns the same
   * object if there is nothing to do, and may throw. Returns the record as stored. Throws
   * NOT_FOUND, CONFLICT.
   */
  async update(id: string, change: (record: InstanceRecord) => InstanceRecord): Promise<InstanceRecord> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const entry = this.#options.view.instance(id);
      if (entry === undefined) throw noSuchWorkspace(id);
      const after = change(entry.record);
      if (after === entry.record) return after;
      if (await this.replace(entry, after)) return this.#options.view.instance(id)?.record ?? after;
    }
    throw new CoordinatorError("CONFLICT", `concurrent requests kept changing workspace ${id}; try again`);
  }

  /** Returns the write of a new instance, and the compare that it does not exist yet. */
  create(record: InstanceRecord): { readonly compare: Compare; readonly op: Op } {
    return {
      compare: { type: "absent", key: instanceKey(record.id) },
      op: instanceWrite(undefined, record, this.#options.epoch),
    };
  }
}

export function noSuchWorkspace(id: string): CoordinatorError {
  return new CoordinatorError("NOT_FOUND", `there is no workspace instance "${id.slice(0, 100)}"`);
}
