import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { pino } from "pino";
import { aNode } from "../../test/support/entries.ts";
import { HandFedState } from "../../test/support/hand-fed-state.ts";
import { MassLoss } from "../control/eviction/mass-loss.ts";
import { toTimestamp } from "../model/timestamp.ts";
import { defaultLivenessLimits } from "./liveness-limits.ts";
import { NodeLiveness, type NodeLivenessOptions } from "./node-liveness.ts";

const INTERVAL_MS = 2_500;
const HOUR_MS = 3_600_000;
const START_MS = 10 * HOUR_MS;

/** A `MassLoss` that records every update. */
class RecordedMassLoss extends MassLoss {
  readonly updates: { readonly nodes: number; readonly lost: number }[] = [];
  absences = 0;

  override update(fleet: { readonly nodes: number; readonly lost: number }, nowMs: number): void {
    this.updates.push(fleet);
    super.update(fleet, nowMs);
  }

  override wasAbsent(nowMs: number): void {
    this.absences++;
    super.wasAbsent(nowMs);
  }
}

interface Fleet extends Partial<NodeLivenessOptions> {
  readonly names?: readonly string[];
  /** Nodes that were lost before the start of the coordinator, with the time since then in milliseconds. */
  readonly lostForMs?: Readonly<Record<string, number>>;
}

function start({ names = ["n1", "n2"], lostForMs = {}, ...options }: Fleet = {}) {
  const clock = new VirtualClock({ startMs: START_MS });
  const nodes = names.map((name) => {
    const node = aNode({ name });
    const lostMs = lostForMs[name];
    if (lostMs !== undefined) node.record.unreachableSince = toTimestamp(START_MS - lostMs);
    return node;
  });
  const { state } = new HandFedState({ nodes });
  const massLoss = new RecordedMassLoss({ recoveryMs: 0 });
  const limits = defaultLivenessLimits(INTERVAL_MS);
  const liveness = new NodeLiveness({
    ...{ state, clock, limits, massLoss, log: pino({ level: "silent" }), heartbeatIntervalMs: INTERVAL_MS },
    ...options,
  });
  const beatFor = (ms: number, ...beating: readonly string[]): void => {
    for (let passedMs = 0; passedMs < ms; passedMs += INTERVAL_MS) {
      clock.advance(INTERVAL_MS);
      for (const node of beating) liveness.recordContact(node);
    }
  };
  for (const name of names) if (lostForMs[name] === undefined) liveness.recordContact(name);
  return {
    clock,
    liveness,
    limits,
    massLoss,
    beatFor,
    isReady: (name: string) => state.node(name)?.health.ready,
  };
}

test("checks whether the process was blocked before a node is lost", (t) => {
  const parts: { liveness?: NodeLiveness; stalledMs: number } = { stalledMs: 3_000 };
  const { clock, liveness, limits, isReady } = start({
    checkStall: () => {
      parts.liveness?.recordStall(parts.stalledMs);
      parts.stalledMs = 0;
    },
  });
  t.after(() => liveness.stop());
  parts.liveness = liveness;
  clock.advance(limits.unreachableMs);
  assert.equal(isReady("n1"), true);
  clock.advance(3_000);
  assert.equal(isReady("n1"), false);
});

test("uses one timer for all nodes whose heartbeats arrive", (t) => {
  const names = Array.from({ length: 50 }, (_, at) => `n${at}`);
  const { clock, liveness, limits, beatFor, isReady } = start({ names });
  t.after(() => liveness.stop());
  const scheduling = t.mock.method(clock, "schedule");
  beatFor(60_000, ...names);
  // Each visit of all nodes schedules the next one.
  assert.ok(
    scheduling.mock.callCount() <= 60_000 / (limits.unreachableMs - INTERVAL_MS),
    `${scheduling.mock.callCount()}`,
  );
  beatFor(limits.unreachableMs + INTERVAL_MS, ...names.slice(1));
  assert.deepEqual([isReady("n0"), isReady("n1")], [false, true]);
});

test("counts a pause as an absence if agents close their connections during it", (t) => {
  const { liveness, massLoss } = start();
  t.after(() => liveness.stop());
  const { absences } = massLoss;
  liveness.recordStall(4_999);
  assert.equal(massLoss.absences, absences);
  liveness.recordStall(5_000);
  assert.equal(massLoss.absences, absences + 1);
});

test("counts nodes as lost together that were disconnected within one heartbeat interval", (t) => {
  const { clock, liveness, limits, massLoss } = start();
  t.after(() => liveness.stop());
  // A heartbeat may be late by a quarter of the interval.
  clock.advance(1.2 * INTERVAL_MS);
  liveness.recordContact("n2");
  clock.advance(limits.unreachableMs - 1.2 * INTERVAL_MS);
  assert.deepEqual(massLoss.updates.at(-1), { nodes: 2, lost: 2 });
});

test("doesn't suspect a node before its next heartbeat is due", (t) => {
  const intervalMs = 5_000;
  const { clock, liveness, limits, massLoss } = start({ heartbeatIntervalMs: intervalMs });
  t.after(() => liveness.stop());
  clock.advance(limits.unreachableMs - intervalMs);
  liveness.recordContact("n2");
  clock.advance(intervalMs);
  assert.deepEqual(massLoss.updates.at(-1), { nodes: 2, lost: 1 });
});

test("counts the fleet again when a suspicion has ended, and not continuously", (t) => {
  const { clock, liveness, limits, massLoss } = start();
  t.after(() => liveness.stop());
  clock.advance(INTERVAL_MS);
  liveness.recordContact("n2");
  clock.advance(limits.unreachableMs - INTERVAL_MS);
  const { length } = massLoss.updates;
  clock.advance(2_000);
  liveness.recordContact("n2");
  clock.advance(1.25 * INTERVAL_MS - 2_000);
  assert.deepEqual(massLoss.updates.slice(length), [{ nodes: 2, lost: 1 }]);
});

test("counts a lost node for an hour, and then as long as it has pods to replace", (t) => {
  for (const hasPods of [true, false]) {
    const { liveness, limits, massLoss, beatFor } = start({
      names: ["n1", "n2", "n3"],
      hasPodsToReplace: () => hasPods,
    });
    t.after(() => liveness.stop());
    beatFor(2 * HOUR_MS, "n1", "n2", "n3");
    beatFor(limits.unreachableMs, "n2", "n3");
    assert.deepEqual(massLoss.updates.at(-1), { nodes: 3, lost: 1 });
    beatFor(HOUR_MS, "n2", "n3");
    beatFor(limits.unreachableMs, "n3");
    assert.deepEqual(massLoss.updates.at(-1), hasPods ? { nodes: 3, lost: 2 } : { nodes: 2, lost: 1 });
  }
});

test("counts the hour of a node that was lost before the start from its loss", (t) => {
  const { liveness, massLoss } = start({
    names: ["n1", "n2", "n3"],
    lostForMs: { n1: HOUR_MS, n2: HOUR_MS - 1 },
    hasPodsToReplace: () => false,
  });
  t.after(() => liveness.stop());
  assert.deepEqual(massLoss.updates[0], { nodes: 2, lost: 1 });
});

test("doesn't count a removed node", (t) => {
  const { clock, liveness, limits, massLoss } = start();
  t.after(() => liveness.stop());
  clock.advance(limits.unreachableMs);
  liveness.recordContact("n2");
  liveness.forget("n1");
  assert.deepEqual(massLoss.updates.at(-1), { nodes: 1, lost: 0 });
});
