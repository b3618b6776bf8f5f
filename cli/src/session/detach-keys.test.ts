import assert from "node:assert/strict";
import { test } from "node:test";
import { DetachKeys, parseDetachKeys } from "./detach-keys.ts";

test("parses keys with and without the control key", () => {
  assert.deepEqual([...parseDetachKeys("ctrl-p,ctrl-q")], [16, 17]);
  assert.deepEqual([...parseDetachKeys("ctrl-],x,~")], [29, 120, 126]);
  for (const wrong of ["", "ctrl-", "ctrl-pp", "alt-p", "a,,b"])
    assert.throws(() => parseDetachKeys(wrong), /--detach-keys: "/, wrong);
  assert.throws(() => parseDetachKeys("a,b,c,d,e,f,g,h,i"), /at most 8/);
});

test("removes the keys even if they arrive in parts, and passes everything else on", () => {
  const filter = (...pieces: string[]): [string, boolean] => {
    const keys = new DetachKeys(Buffer.from("pq"));
    let passed = "";
    for (const piece of pieces) {
      const { data, isDetached } = keys.filter(Buffer.from(piece));
      passed += data.toString();
      if (isDetached) return [passed, true];
    }
    return [passed, false];
  };
  assert.deepEqual(filter("apqz"), ["a", true]);
  assert.deepEqual(filter("ap", "q"), ["a", true]);
  assert.deepEqual(filter("ap", "pq"), ["ap", true]);
  assert.deepEqual(filter("pa", "qp", "x"), ["paqpx", false]);
});
