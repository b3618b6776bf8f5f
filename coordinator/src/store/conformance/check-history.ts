import assert from "node:assert/strict";
import type { RangeResult, Revision, StoredRecord } from "../store.ts";
import { text } from "./fixture.ts";
import { Model, type ModelRecord } from "./model.ts";
import type { Stretch } from "./random-watcher.ts";
import type { Call, Recorded } from "./recorder.ts";

type RevokeCall = Recorded & { readonly call: Extract<Call, { kind: "revoke" }> };
type TxnCall = Extract<Call, { kind: "txn" }>;

/**
 * Fails unless the calls can have happened one after the other, each between its beginning and its end, with the
 * answers they got, and the watchers saw just what happened. The revisions say in which order, so there is only one
 * to try.
 */
export function checkHistory(calls: readonly Recorded[], stretches: readonly Stretch[]): void {
  const seen = stretches.filter(({ prefix }) => prefix === "").flatMap(({ lines }) => lines);
  const model = replay(calls, new Set(seen.map(sortedEnds)));
  for (const recorded of calls) {
    const { call } = recorded;
    if (call.kind === "txn") checkUnchanged(model, call, recorded);
    else if (call.kind === "range") checkRange(model, call, recorded);
    else if (call.kind === "get") checkGet(model, call, recorded);
    else
      assert.deepEqual(model.leased(call.lease, recorded.atMost), [], "a lease that has ended holds no keys");
  }
  for (const { prefix, from, through, lines } of stretches) {
    assert.deepEqual(
      lines.map(sortedEnds),
      model.watched(prefix, from, through).map(sortedEnds),
      `what the watcher of "${prefix}" saw from ${from} on`,
    );
  }
}

/** Sorts a line of deletions only: the keys of a lease that ends have no order. */
function sortedEnds(line: string): string {
  const [revision, ...events] = line.split(" ");
  return events.every((event) => event.startsWith("-")) ? [revision, ...events.sort()].join(" ") : line;
}

/** Each revision was taken by exactly one transaction or end of a lease; those that changed nothing were decided at one. */
function replay(calls: readonly Recorded[], seen: ReadonlySet<string>): Model {
  const model = new Model();
  const byRevision = Map.groupBy(calls.flatMap(toSucceeded), ({ call }) => call.result.revision);
  const revokes = calls.filter((it): it is RevokeCall => it.call.kind === "revoke");
  const last = Math.max(0, ...byRevision.keys());
  for (let revision = 1; revision <= last; revision++) {
    const decided = (byRevision.get(revision) ?? []).sort(
      (a, b) => effects(model, b.call) - effects(model, a.call),
    );
    const [taker] = decided;
    const count = taker === undefined ? 0 : effects(model, taker.call);
    const at = nextRevoke(model, revokes, revision);
    const ended = at < 0 ? [] : model.leased(revokes[at]?.call.lease);
    // A transaction that only deletes may have come after the end of a lease that had taken the same keys.
    const isTaken = count > ended.length || (count > 0 && !seen.has(endOf(revision, ended)));
    if (isTaken && taker !== undefined) applyTxn(model, taker, revision);
    else {
      assert.ok(at >= 0, `no client received revision ${revision}, and no lease ended at it`);
      revokes.splice(at, 1);
      model.apply(ended.map((key) => ({ kind: "delete", key })));
    }
    for (const { call } of isTaken ? decided.slice(1) : decided) {
      assert.equal(effects(model, call), 0, `revision ${revision} was taken once`);
      assert.ok(model.holds(call.compares, revision), `what was decided at revision ${revision} was there`);
    }
  }
  return model;
}

function applyTxn(model: Model, { call, atLeast, atMost }: Succeeded, revision: Revision): void {
  assert.ok(revision > atLeast, `revision ${revision} was given out, though ${atLeast} was known`);
  assert.ok(revision <= atMost, `revision ${revision} was answered before it was durable`);
  assert.ok(model.holds(call.compares, revision - 1), `revision ${revision} was decided on what was there`);
  model.apply(call.ops);
}

/** Returns the place of the first end of a lease, in their order, that can have taken the revision. -1: there is none. */
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
