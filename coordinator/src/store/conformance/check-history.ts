import assert from "node:assert/strict";
import type { RangeResult, Revision, StoredRecord } from "../store.ts";
import { text } from "./fixture.ts";
import { Model, type ModelRecord } from "./model.ts";
import type { Stretch } from "./random-watcher.ts";
import type { Call, Recorded } from "./recorder.ts";

type TxnCall = Extract<Call, { kind: "txn" }>;

/**
 * Fails unless the calls can have happened one after the other, each between its beginning and its end, with the
 * answers they got, and the watchers saw just what happened. The revisions say in which order, so there is only one
 * to try.
 */
export function checkHistory(calls: readonly Recorded[], stretches: readonly Stretch[]): void {
  const model = replay(calls);
  for (const recorded of calls) {
    const { call } = recorded;
    if (call.kind === "txn") checkUnchanged(model, call, recorded);
    else if (call.kind === "range") checkRange(model, call, recorded);
    else checkGet(model, call, recorded);
  }
  for (const { prefix, from, through, lines } of stretches) {
    assert.deepEqual(
      lines,
      model.watched(prefix, from, through),
      `what the watcher of "${prefix}" saw from ${from} on`,
    );
  }
}

/** Each revision was taken by exactly one transaction; those that changed nothing were decided at one. */
function replay(calls: readonly Recorded[]): Model {
  const model = new Model();
  const byRevision = Map.groupBy(calls.flatMap(toSucceeded), ({ call }) => call.result.revision);
  const last = Math.max(0, ...byRevision.keys());
  for (let revision = 1; revision <= last; revision++) {
    const [taker, ...others] = (byRevision.get(revision) ?? []).sort(
      (a, b) => effects(model, b.call) - effects(model, a.call),
    );
    assert.ok(taker !== undefined, `no client received revision ${revision}`);
    assert.ok(
      revision > taker.atLeast,
      `revision ${revision} was given out, though ${taker.atLeast} was known`,
    );
    assert.ok(revision <= taker.atMost, `revision ${revision} was answered before it was durable`);
    assert.ok(
      model.holds(taker.call.compares, revision - 1),
      `revision ${revision} was decided on what was there`,
    );
    assert.ok(effects(model, taker.call) > 0, `revision ${revision} changed something`);
    model.apply(taker.call.ops);
    for (const { call } of others) {
      assert.equal(effects(model, call), 0, `revision ${revision} was taken once`);
      assert.ok(model.holds(call.compares, revision), `what was decided at revision ${revision} was there`);
    }
  }
  return model;
}

function toSucceeded({
  call,
  atLeast,
  atMost,
}: Recorded): { call: TxnCall; atLeast: Revision; atMost: Revision }[] {
  return call.kind === "txn" && call.result.succeeded ? [{ call, atLeast, atMost }] : [];
}

/**
 * Returns the number of effective operations at this point. A put always has an effect, so it comes before deletes that found
 * nothing.
 */
function effects(model: Model, call: TxnCall): number {
  const puts = call.ops.filter((op) => op.kind === "put").length;
  return puts * 1000 + model.deleted(call.ops);
}

/** A transaction that failed, or changed nothing, was right about it. */
function checkUnchanged(model: Model, call: TxnCall, { atLeast, atMost }: Recorded): void {
  const { succeeded, revision } = call.result;
  assert.ok(
    revision >= atLeast && revision <= atMost,
    `answered with ${revision}, known were ${atLeast} to ${atMost}`,
  );
  if (!succeeded) assert.ok(!model.holds(call.compares, revision), "a compare failed");
}

function checkRange(
  model: Model,
  call: Extract<Call, { kind: "range" }>,
  { atLeast, atMost }: Recorded,
): void {
  const { revision } = call.result;
  if (call.at === undefined) {
    assert.ok(
      revision >= atLeast && revision <= atMost,
      `read at ${revision}, known were ${atLeast} to ${atMost}`,
    );
  } else {
    assert.equal(revision, call.at);
  }
  assert.deepEqual(readable(call.result), expected(model, call.prefix, revision));
}

/** A get does not say at which revision it read: one of those it may have must fit. */
function checkGet(model: Model, call: Extract<Call, { kind: "get" }>, { atLeast, atMost }: Recorded): void {
  const found = call.result === undefined ? undefined : toModel(call.result);
  for (let revision = atLeast; revision <= atMost; revision++) {
    if (same(model.at(revision).get(call.key), found)) return;
  }
  assert.fail(`${call.key} was never like ${JSON.stringify(found)} from ${atLeast} to ${atMost}`);
}

function readable({ records }: RangeResult): [string, ModelRecord][] {
  return records.map((record) => [record.key, toModel(record)]);
}

function expected(model: Model, prefix: string, revision: Revision): [string, ModelRecord][] {
  return [...model.at(revision)]
    .filter(([key]) => key.startsWith(prefix))
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

function toModel({ value, createRevision, modRevision, version }: StoredRecord): ModelRecord {
  return { value: text(value) ?? "", createRevision, modRevision, version };
}

function same(a: ModelRecord | undefined, b: ModelRecord | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return (
    a.value === b.value &&
    a.version === b.version &&
    a.modRevision === b.modRevision &&
    a.createRevision === b.createRevision
  );
}
