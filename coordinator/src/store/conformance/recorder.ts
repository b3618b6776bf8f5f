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
      readonly kind: "txn";
      readonly compares: readonly Compare[];
      readonly ops: readonly Op[];
      readonly result: TxnResult;
    }
  | {
      readonly kind: "range";
      readonly prefix: string;
      readonly at: Revision | undefined;
      readonly result: RangeResult;
    }
  | { readonly kind: "get"; readonly key: string; readonly result: StoredRecord | undefined }
  /** The end of a lease, which its client doesn't use from then on. The answer doesn't say which revision it took. */
  | { readonly kind: "revoke"; readonly lease: LeaseId };

/** A call and what was known when it began and when it ended. */
export interface Recorded {
  readonly call: Call;
  /** The highest revision that any call had answered with before this one began: it must see at least that. */
  readonly atLeast: Revision;
  /** The store's revision when it ended: it can't have seen more. */
  readonly atMost: Revision;
}

export class Recorder {
  readonly calls: Recorded[] = [];
  #answered: Revision = 0;
  #revoking: Promise<void> = Promise.resolve();

  async record(run: () => Promise<Call>, revisionNow: () => Revision): Promise<void> {
    const atLeast = this.#answered;
    const call = await run();
    if (call.kind === "txn" || (call.kind === "range" && call.at === undefined)) {
      this.#answered = Math.max(this.#answered, call.result.revision);
    }
    this.calls.push({ call, atLeast, atMost: revisionNow() });
  }

  /** Revokes the leases of all clients one after the other, so that the order of the calls is the order of their revisions. */
  revoke(lease: Lease, revisionNow: () => Revision): Promise<void> {
    const run = async (): Promise<Call> => {
      await lease.revoke();
      return { kind: "revoke", lease: lease.id };
    };
    this.#revoking = this.#revoking.then(() => this.record(run, revisionNow));
    return this.#revoking;
  }
}
