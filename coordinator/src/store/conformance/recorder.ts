import type {
  Compare,
  Lease,
  LeaseId,
  Op,
  RangeResult,
  Revision,
  StoredRecord,
  TxnResult,
} from "../store.ts";

export type Call =
  | {
      readonly type: "txn";
      readonly compares: readonly Compare[];
      readonly ops: readonly Op[];
      readonly result: TxnResult;
    }
  | {
      readonly type: "range";
      readonly prefix: string;
      readonly at: Revision | undefined;
      readonly result: RangeResult;
    }
  | { readonly type: "get"; readonly key: string; readonly result: StoredRecord | undefined }
  /** The revocation of a lease, which its client doesn't use afterwards. The result doesn't contain its revision. */
  | { readonly type: "revoke"; readonly lease: LeaseId };

/** A call with the revisions known at its start and its end. */
export interface Recorded {
  readonly call: Call;
  /** The highest revision that any call had returned when this call began. The call must read at least that revision. */
  readonly atLeast: Revision;
  /** The store's revision when the call ended. The call can't have read a later one. */
  readonly atMost: Revision;
}

export class Recorder {
  readonly calls: Recorded[] = [];
  #answered: Revision = 0;
  #revoking: Promise<void> = Promise.resolve();

  async record(run: () => Promise<Call>, revisionNow: () => Revision): Promise<void> {
    const atLeast = this.#answered;
    const call = await run();
    if (call.type === "txn" || (call.type === "range" && call.at === undefined)) {
      this.#answered = Math.max(this.#answered, call.result.revision);
    }
    this.calls.push({ call, atLeast, atMost: revisionNow() });
  }

  /**
   * Revokes the leases of all clients one after the other, so that the order of the calls is the order of their revisions.
   */
  revoke(lease: Lease, revisionNow: () => Revision): Promise<void> {
    const run = async (): Promise<Call> => {
      await lease.revoke();
      return { type: "revoke", lease: lease.id };
    };
    this.#revoking = this.#revoking.then(() => this.record(run, revisionNow));
    return this.#revoking;
  }
}
