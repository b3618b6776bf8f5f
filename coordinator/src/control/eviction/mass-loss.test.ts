import assert from "node:assert/strict";
import { test } from "node:test";
import { MassLoss } from "./mass-loss.ts";

const RECOVERY_MS = 30_000;

function start() {
  const changes: boolean[] = [];
  const massLoss = new MassLoss({ recoveryMs: RECOVERY_MS, onChange: (active) => changes.push(active) });
  const lose = (lost: number, nowMs: number): void => massLoss.update({ nodes: 10, lost }, nowMs);
  return { massLoss, lose, changes };
}

test("begins above 55 % of lost nodes, once", () => {
  const { massLoss, lose, changes } = start();
  lose(5, 0);
  assert.equal(massLoss.isActive(0), false);
  lose(6, 1);
  lose(10, 2);
  assert.deepEqual([massLoss.isActive(2), massLoss.count, changes], [true, 1, [true]]);
});

test("lasts until no further node has come back for the recovery grace", () => {
  const { massLoss, lose, changes } = start();
  lose(10, 0);
  lose(5, 1_000);
  assert.equal(massLoss.recoveringMs(1_000), RECOVERY_MS);
  lose(3, 21_000);
  assert.equal(massLoss.recoveringMs(30_999), 20_001);
  assert.deepEqual([massLoss.isActive(50_999), massLoss.overMs], [true, undefined]);
  assert.deepEqual([massLoss.isActive(51_000), massLoss.overMs, changes], [false, 51_000, [true, false]]);
});

test("a node that comes and goes does not prolong the recovery", () => {
  const { massLoss, lose } = start();
  lose(10, 0);
  for (let atMs = 0; atMs < 29_000; atMs += 1_000) lose(atMs % 2_000 === 0 ? 3 : 4, atMs);
  assert.equal(massLoss.isActive(RECOVERY_MS - 1), true);
  assert.equal(massLoss.isActive(RECOVERY_MS), false);
});

test("is over at once when every node is back", () => {
  const { massLoss, lose } = start();
  lose(10, 0);
  lose(1, 500);
  lose(0, 600);
  assert.deepEqual([massLoss.isActive(600), massLoss.overMs], [false, 600]);
});

test("most nodes lost again during the recovery are the same mass loss", () => {
  const { massLoss, lose, changes } = start();
  lose(10, 0);
  lose(5, 1_000);
  lose(10, 2_000);
  assert.deepEqual([massLoss.isActive(100_000), massLoss.recoveringMs(100_000)], [true, 0]);
  assert.deepEqual([massLoss.count, changes], [1, [true]]);
});

test("after an absence evictions wait, and endpoints are withdrawn as ever", () => {
  const { massLoss, changes } = start();
  massLoss.wasAbsent(0);
  assert.deepEqual([massLoss.isActive(0), massLoss.recoveringMs(0)], [false, RECOVERY_MS]);
  assert.deepEqual([massLoss.recoveringMs(RECOVERY_MS), massLoss.overMs, changes], [0, undefined, []]);
});

test("an absence during the recovery from a mass loss prolongs it", () => {
  const { massLoss, lose } = start();
  lose(10, 0);
  lose(5, 0);
  massLoss.wasAbsent(20_000);
  assert.equal(massLoss.isActive(49_999), true);
  assert.equal(massLoss.isActive(50_000), false);
});
