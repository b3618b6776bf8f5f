import assert from "node:assert/strict";
import type { RangeResult, Revision, StoredRecord } from "../store.ts";
import { text } from "./fixture.ts";
import { Model, type ModelRecord } from "./model.ts";
import type { Stretch } from "./random-watcher.ts";
import type { Call, Recorded } from "./recorder.ts";

type RevokeCall = Recorded & { readonly call: Extract<Call, { type: "revoke" }> };
type TxnCall = Extract<Call, { type: "txn" }>;

/**
 * Asserts that the recorded calls are linearizable: there is an order in which each call takes effect between its start and
 * its end and returns what it returned, and the watchers received exactly the changes of that order. Revisions determine
 * the order, so only one has to be checked.
 */
export function checkHistory(calls: readonly Recorded[], stretches: readonly Stretch[]): void {
  const seen = stretches.filter(({ prefix }) => prefix === "").flatMap(({ lines }) => lines);
  const model = replay(calls, new Set(seen.map(sortedEnds)));
  for (const recorded of calls) {
    const { call } = recorded;
    if (call.type === "txn") checkUnchanged(model, call, recorded);
    else if (call.type === "range") checkRange(model, call, recorded);
    else if (call.type === "get") checkGet(model, call, recorded);
    else
      assert.deepEqual(model.leased(call.lease, recorded.atMost), [], "a lease that has ended holds no keys");
  }
  for (const { prefix, from, through, lines } of stretches) {
    assert.deepEqual(
      lines.map(sortedEnds),
      model.watched(prefix, from, through).map(sortedEnds),
      `the changes that the watcher of "${prefix}" received from ${from} on`,
    );
  }
}

/** Sorts the changes of a line that has only deletions, because the keys of an ended lease have no order. */
function sortedEnds(line: string): string {
  const [revision, ...events] = line.split(" ");
  return events.every((event) => event.startsWith("-")) ? [revision, ...events.sort()].join(" ") : line;
}

/**
 * Replays the calls on a model. Each revision must be the result of exactly one transaction or end of a lease. Transactions
 * that changed nothing are checked at the revision that they returned.
 */
function replay(calls: readonly Recorded[], seen: ReadonlySet<string>): Model {
  const model = new Model();
  const byRevision = Map.groupBy(calls.flatMap(toSucceeded), ({ call }) => call.result.revision);
  const revokes = calls.filter((it): it is RevokeCall => it.call.type === "revoke");
  const last = Math.max(0, ...byRevision.keys());
  for (let revision = 1; revision <= last; revision++) {
    const decided = (byRevision.get(revision) ?? []).sort(
      (a, b) => effects(model, b.call) - effects(model, a.call),
    );
    const [winner] = decided;
    const count = winner === undefined ? 0 : effects(model, winner.call);
    const at = nextRevoke(model, revokes, revision);
    const ended = at < 0 ? [] : model.leased(revokes[at]?.call.lease);
    // The revision of a transaction that only deletes may belong to the end of a lease that deleted the same keys before.
    const isApplied = count > ended.length || (count > 0 && !seen.has(endOf(revision, ended)));
    if (isApplied && winner !== undefined) applyTxn(model, winner, revision);
    else {
      assert.ok(at >= 0, `no client received revision ${revision}, and no lease ended at it`);
      revokes.splice(at, 1);
      model.apply(ended.map((key) => ({ type: "delete", key })));
    }
    for (const { call } of isApplied ? decided.slice(1) : decided) {
      assert.equal(effects(model, call), 0, `revision ${revision} has one transaction`);
      assert.ok(model.holds(call.compares, revision), `the compares of revision ${revision} held`);
    }
  }
  return model;
}

function applyTxn(model: Model, { call, atLeast, atMost }: Succeeded, revision: Revision): void {
  assert.ok(revision > atLeast, `revision ${revision} was assigned after ${atLeast} was returned`);
  assert.ok(revision <= atMost, `revision ${revision} was returned before it was durable`);
  assert.ok(
    model.holds(call.compares, revision - 1),
    `revision ${revision} was decided from the previous state`,
  );
  model.apply(call.ops);
}

/** Returns the index of the first end of a lease that can have produced the revision. -1: there is none. */
function nextRevoke(model: Model, revokes: readonly RevokeCall[], revision: Revision): number {
  return revokes.findIndex(({ call, atLeast, atMost }) => {
    return revision > atLeast && revision <= atMost && model.leased(call.lease).length > 0;
  });
}

function endOf(revision: Revision, keys: readonly string[]): string {
  return [revision, ...keys.map((key) => `-${key}`)].join(" ");
}

interface Succeeded {
  readonly call: TxnCall;
  readonly atLeast: Revision;
  readonly atMost: Revision;
}

function toSucceeded({ call, atLeast, atMost }: Recorded): Succeeded[] {
  return call.type === "txn" && call.result.succeeded ? [{ call, atLeast, atMost }] : [];
}

/**
 * Returns the number of operations with an effect. A put always has one, so it counts before deletes that found nothing.
 */
function effects(model: Model, call: TxnCall): number {
  const puts = call.ops.filter((op) => op.type === "put").length;
  return puts * 1000 + model.deleted(call.ops);
}

/** Asserts that a transaction that failed or changed nothing did so correctly. */
function checkUnchanged(model: Model, call: TxnCall, { atLeast, atMost }: Recorded): void {
  const { succeeded, revision } = call.result;
  assert.ok(
    revision >= atLeast && revision <= atMost,
    `returned ${revision}, expected ${atLeast} to ${atMost}`,
  );
  if (!succeeded) assert.ok(!model.holds(call.compares, revision), "a compare failed");
}

function checkRange(
  model: Model,
  call: Extract<Call, { type: "range" }>,
  { atLeast, atMost }: Recorded,
): void {
  const { revision } = call.result;
  if (call.at === undefined) {
    assert.ok(
      revision >= atLeast && revision <= atMost,
      `read at ${revision}, expected ${atLeast} to ${atMost}`,
    );
  } else {
    assert.equal(revision, call.at);
  }
  assert.deepEqual(readable(call.result), expected(model, call.prefix, revision));
}

/**
 * Asserts that the result of a get matches one of the revisions at which it may have read, because a get doesn't return its
 * revision.
 */
function checkGet(model: Model, call: Extract<Call, { type: "get" }>, { atLeast, atMost }: Recorded): void {
  const found = call.result === undefined ? undefined : toModel(call.result);
  for (let revision = atLeast; revision <= atMost; revision++) {
    if (same(model.at(revision).get(call.key), found)) return;
  }
  assert.fail(`${call.key} never had the value ${JSON.stringify(found)} from ${atLeast} to ${atMost}`);
}

function readable({ records }: RangeResult): [string, ModelRecord][] {
  return records.map((record) => [record.key, toModel(record)]);
}

function expected(model: Model, prefix: string, revision: Revision): [string, ModelRecord][] {
  return [...model.at(revision)]
    .filter(([key]) => key.startsWith(prefix))
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

function toModel({ value, createRevision, modRevision, version, lease }: StoredRecord): ModelRecord {
  return { value: text(value) ?? "", createRevision, modRevision, version, lease };
}

function same(a: ModelRecord | undefined, b: ModelRecord | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return (
    a.value === b.value &&
    a.version === b.version &&
    a.lease === b.lease &&
    a.modRevision === b.modRevision &&
    a.createRevision === b.createRevision
  );
}
