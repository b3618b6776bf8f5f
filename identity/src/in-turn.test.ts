import assert from "node:assert/strict";
import { test } from "node:test";
import { InTurn } from "./in-turn.ts";

test("visits all members in turn, up to a limit per call", () => {
  const turn = new InTurn(new Set([1, 2, 3, 4, 5]));
  assert.deepEqual([...turn.next(2)], [1, 2]);
  assert.deepEqual([...turn.next(2)], [3, 4]);
  assert.deepEqual([...turn.next(2)], [5, 1]);
  assert.deepEqual([...turn.next(100)], [2, 3, 4, 5, 1], "each once");
});

test("skips deleted members and visits added ones", () => {
  const members = new Set([1, 2, 3]);
  const turn = new InTurn(members);
  assert.deepEqual([...turn.next(1)], [1]);
  members.delete(2);
  members.add(4);
  assert.deepEqual([...turn.next(2)], [3, 4]);
  members.clear();
  assert.deepEqual([...turn.next(2)], []);
  members.add(5);
  assert.deepEqual([...turn.next(2)], [5]);
});
