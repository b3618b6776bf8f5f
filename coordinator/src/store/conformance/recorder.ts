import type { Compare, Op, RangeResult, Revision, StoredRecord, TxnResult } from "../store.ts";

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
  | { readonly kind: "get"; readonly key: string; readonly result: StoredRecord | undefined };

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

  async record(run: () => Promise<Call>, revisionNow: () => Revision): Promise<void> {
    const atLeast = this.#answered;
    const call = await run();
    if (call.kind === "txn" || (call.kind === "range" && call.at === undefined)) {
      this.#answered = Math.max(this.#answered, call.result.revision);
    }
    this.calls.push({ call, atLeast, atMost: revisionNow() });
  }
}
