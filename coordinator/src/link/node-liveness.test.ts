import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@forage/common/virtual-clock";
import { pino } from "pino";
import { aNode } from "../../test/support/entries.ts";
import { HandFedState } from "../../test/support/hand-fed-state.ts";
import { MassLoss } from "../control/eviction/mass-loss.ts";
import { toTimestamp } from "../model/timestamp.ts";
import type { NodeEntry } from "../state/entries.ts";
import { defaultLivenessLimits } from "./liveness-limits.ts";
import { NodeLiveness } from "./node-liveness.ts";

const limits = defaultLivenessLimits(2_500);

test("a node is unreachable 7.5 s after its last heartbeat", () => {
  const { clock, liveness, health } = start();
  liveness.recordContact("n1");
  const sinceMs = clock.nowMs();
  assert.deepEqual([health().ready, health().sinceMs], [true, sinceMs]);
  for (let beat = 0; beat < 10; beat++) {
    clock.advance(2_500);
    liveness.recordContact("n1");
  }
  assert.deepEqual([health().ready, health().sinceMs], [true, sinceMs]);
  clock.advance(7_499);
  assert.equal(health().ready, true);
  clock.advance(1);
  assert.deepEqual(health().ready, false);
  assert.equal(health().message, "it sends no heartbeats");
  assert.equal(health().sinceMs, clock.nowMs());
});

test("the end of a stream counts as a sign of life, unless the coordinator ended it for missing heartbeats", () => {
  const { clock, liveness, health } = start();
  liveness.recordContact("n1");
  clock.advance(2_400);
  liveness.left("n1", false);
  clock.advance(7_499);
  assert.equal(health().ready, true);
  clock.advance(1);
  assert.deepEqual([health().ready, health().message], [false, "its connection was lost"]);
  liveness.recordContact("n1");
  clock.advance(5_000);
  liveness.left("n1", true);
  clock.advance(2_500);
  assert.deepEqual([health().ready, health().message], [false, "it sends no heartbeats"]);
});

test("after a pause of the process, reads pending messages before it decides", () => {
  const { clock, liveness, health } = start();
  liveness.recordContact("n1");
  // Pending input is read after the first due timer has run, and before the next one.
  clock.schedule(7_000, () => liveness.recordContact("n1"));
  clock.advance(limits.unreachableMs);
  assert.equal(health().ready, true);
  clock.advance(6_999);
  assert.equal(health().ready, true);
  clock.advance(1);
  assert.equal(health().ready, false);
});

test("a node is Ready at once after its first losses, and a flapping node after a probation", () => {
  const { clock, liveness, health } = start();
  const lose = (): void => clock.advance(limits.unreachableMs);
  const beat = (ms: number): void => {
    for (let leftMs = ms; leftMs > 0; leftMs -= 2_500) {
      clock.advance(Math.min(2_500, leftMs));
      liveness.recordContact("n1");
    }
  };
  for (let loss = 1; loss <= 2; loss++) {
    liveness.recordContact("n1");
    lose();
    liveness.recordContact("n1");
    assert.equal(health().ready, true, `loss ${loss}`);
  }
  for (const waitMs of [10_000, 20_000, 40_000, 60_000, 60_000]) {
    lose();
    liveness.recordContact("n1");
    assert.equal(health().ready, false);
    assert.match(
      health().message,
      new RegExp(`was lost \\d times in 10 minutes and becomes ready after ${waitMs / 1000} s of heartbeats`),
    );
    beat(waitMs - 1);
    assert.equal(health().ready, false, `${waitMs}`);
    beat(1);
    assert.equal(health().ready, true, `${waitMs}`);
  }
  beat(600_000);
  lose();
  liveness.recordContact("n1");
  assert.equal(health().ready, true, "what is long ago no longer counts");
});

test("restarts the probation of a node that misses heartbeats or disconnects", () => {
  const { clock, liveness, health } = start();
  for (let loss = 0; loss < 3; loss++) {
    liveness.recordContact("n1");
    clock.advance(limits.unreachableMs);
  }
  liveness.recordContact("n1");
  clock.advance(9_000);
  liveness.left("n1", false);
  assert.equal(health().message, "its connection was lost");
  clock.advance(60_000);
  assert.equal(health().ready, false);
  liveness.recordContact("n1");
  clock.advance(60_000);
  assert.equal(health().ready, false, "one heartbeat is not enough to be ready");
});

test("after a start, nodes are Ready for a grace period, except those that were lost before", () => {
  const lostMs = 900_000;
  const lost = aNode({ name: "n2" });
  lost.record.unreachableSince = toTimestamp(lostMs);
  const { clock, liveness, health, state } = start(aNode({ name: "n1", ready: false }), lost);
  assert.equal(health("n1").ready, true);
  assert.deepEqual([health("n2").ready, health("n2").sinceMs], [false, lostMs]);
  clock.advance(limits.startGraceMs - 1);
  assert.equal(health("n1").ready, true);
  clock.advance(1);
  assert.deepEqual(
    [health("n1").ready, health("n1").message],
    [false, "it has not connected since the coordinator started"],
  );
  liveness.recordContact("n2");
  assert.equal(health("n2").ready, true);
  liveness.forget("n1");
  liveness.stop();
  liveness.recordContact("n2");
  assert.equal(clock.pending, 0);
  assert.ok(state.node("n1"));
});

test("extends the grace period of a start while nodes return one after another, up to four times", () => {
  const everyMs = limits.startGraceMs / 3 - 1;
  const returning = Array.from({ length: 20 }, (_, i) => aNode({ name: `r${i}`, ready: false }));
  const { clock, liveness, health } = start(aNode({ name: "n1", ready: false }), ...returning);
  const after = (returned: number): boolean => {
    for (let i = 0; i < returned; i++) {
      clock.advance(everyMs);
      liveness.recordContact(`r${i}`);
    }
    return health("n1").ready;
  };
  assert.equal(after(12), true, "long after the grace's own length");
  clock.advance(limits.startGraceMs * 4 - 12 * everyMs - 1);
  assert.equal(health("n1").ready, true);
  // The last check follows at most 50 ms after the end.
  clock.advance(51);
  assert.equal(health("n1").ready, false);
});

test("ends the grace period of a start once no further node returns, without regard to heartbeats of the others", () => {
  const { clock, liveness, health } = start(
    aNode({ name: "n1", ready: false }),
    aNode({ name: "n2", ready: false }),
  );
  clock.advance(limits.startGraceMs - 1_000);
  liveness.recordContact("n2");
  const beatMs = 1_000;
  let waitedMs = 0;
  while (health("n1").ready && waitedMs < limits.startGraceMs) {
    clock.advance(beatMs);
    waitedMs += beatMs;
    liveness.recordContact("n2");
  }
  assert.equal(waitedMs, limits.startGraceMs / 3);
});

test("doesn't count time in which the process was blocked as silence of nodes", () => {
  const { clock, liveness, health } = start();
  liveness.recordContact("n1");
  clock.advance(5_000);
  liveness.recordStall(3_000);
  clock.advance(limits.unreachableMs - 2_001);
  assert.equal(health().ready, true);
  clock.advance(1);
  assert.equal(health().ready, false);
});

test("doesn't count a mass loss as flapping of its nodes", () => {
  const clock = new VirtualClock();
  const { state } = new HandFedState({ nodes: [aNode({ name: "n1" }), aNode({ name: "n2" })] });
  const massLoss = new MassLoss({ recoveryMs: 1_000 });
  const liveness = new NodeLiveness({ state, clock, log: pino({ level: "silent" }), limits, massLoss });
  for (let loss = 1; loss <= 5; loss++) {
    for (const node of ["n1", "n2"]) liveness.recordContact(node);
    assert.equal(state.node("n1")?.health.ready, true, `loss ${loss}`);
    clock.advance(limits.unreachableMs);
    assert.equal(state.node("n1")?.health.ready, false);
  }
  liveness.stop();
});

test("a node with a late heartbeat doesn't prolong the mass loss in which it was counted", () => {
  const clock = new VirtualClock();
  const { state } = new HandFedState({ nodes: [aNode({ name: "n1" }), aNode({ name: "n2" })] });
  const recoveryMs = 1_000;
  const massLoss = new MassLoss({ recoveryMs });
  const liveness = new NodeLiveness({ state, clock, log: pino({ level: "silent" }), limits, massLoss });
  liveness.recordContact("n1");
  clock.advance(2_500);
  liveness.recordContact("n2");
  clock.advance(limits.unreachableMs - 2_500);
  assert.equal(massLoss.isActive(clock.monotonicMs()), true, "n2 was about to be lost as well");
  assert.equal(state.node("n1")?.health.kept, true);
  for (let beat = 0; beat < 4; beat++) {
    liveness.recordContact("n2");
    clock.advance(2_500);
  }
  assert.equal(massLoss.isActive(clock.monotonicMs()), false);
  assert.equal(state.node("n1")?.health.kept ?? false, false);
  liveness.stop();
  assert.equal(clock.pending, 0);
});

/** A `MassLoss` that never becomes active. With few nodes, each loss would otherwise be one of most nodes. */
class NeverMassLoss extends MassLoss {
  override update(): void {}
}

function start(...nodes: NodeEntry[]) {
  const clock = new VirtualClock();
  const all = nodes.length === 0 ? [aNode({ name: "n1", ready: false })] : nodes;
  const { state } = new HandFedState({ nodes: all });
  const massLoss = new NeverMassLoss({ recoveryMs: 0 });
  const liveness = new NodeLiveness({ state, clock, log: pino({ level: "silent" }), limits, massLoss });
  const health = (name = "n1") => {
    const found = state.node(name)?.health;
    assert.ok(found);
    return found;
  };
  return { clock, liveness, state, health };
}
