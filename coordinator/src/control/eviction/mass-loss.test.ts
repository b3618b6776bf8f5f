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

test("begins once when more than 55 % of the nodes are lost", () => {
  const { massLoss, lose, changes } = start();
  lose(5, 0);
  assert.equal(massLoss.isActive(0), false);
  lose(6, 1);
  lose(10, 2);
  assert.deepEqual([massLoss.isActive(2), massLoss.count, changes], [true, 1, [true]]);
});

test("ends when no further node has returned for the recovery time", () => {
  const { massLoss, lose, changes } = start();
  lose(10, 0);
  lose(5, 1_000);
  assert.equal(massLoss.recoveringMs(1_000), RECOVERY_MS);
  lose(3, 21_000);
  assert.equal(massLoss.recoveringMs(30_999), 20_001);
  assert.deepEqual([massLoss.isActive(50_999), massLoss.overMs], [true, undefined]);
  assert.deepEqual([massLoss.isActive(51_000), massLoss.overMs, changes], [false, 51_000, [true, false]]);
});

test("a flapping node doesn't prolong the recovery", () => {
  const { massLoss, lose } = start();
  lose(10, 0);
  for (let atMs = 0; atMs < 29_000; atMs += 1_000) lose(atMs % 2_000 === 0 ? 3 : 4, atMs);
  assert.equal(massLoss.isActive(RECOVERY_MS - 1), true);
  assert.equal(massLoss.isActive(RECOVERY_MS), false);
});

test("ends at once when every node is back", () => {
  const { massLoss, lose } = start();
  lose(10, 0);
  lose(1, 500);
  lose(0, 600);
  assert.deepEqual([massLoss.isActive(600), massLoss.overMs], [false, 600]);
});

test("continues when most nodes are lost again during the recovery", () => {
  const { massLoss, lose, changes } = start();
  lose(10, 0);
  lose(5, 1_000);
  lose(10, 2_000);
  assert.deepEqual([massLoss.isActive(100_000), massLoss.recoveringMs(100_000)], [true, 0]);
  assert.deepEqual([massLoss.count, changes], [1, [true]]);
});

test("an absence of the coordinator delays evictions, but not the withdrawal of endpoints", () => {
  const { massLoss, changes } = start();
  massLoss.wasAbsent(0);
  assert.deepEqual([massLoss.isActive(0), massLoss.recoveringMs(0)], [false, RECOVERY_MS]);
  assert.deepEqual([massLoss.recoveringMs(RECOVERY_MS), massLoss.overMs, changes], [0, undefined, []]);
});

test("an absence during the recovery prolongs the mass loss", () => {
  const { massLoss, lose } = start();
  lose(10, 0);
  lose(5, 0);
  massLoss.wasAbsent(20_000);
  assert.equal(massLoss.isActive(49_999), true);
  assert.equal(massLoss.isActive(50_000), false);
});
