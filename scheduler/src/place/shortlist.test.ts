import assert from "node:assert/strict";
import { test } from "node:test";
import { Shortlist } from "./shortlist.ts";

test("holds as many nodes as were reserved, and begins again with each reservation", () => {
  const list = new Shortlist();
  for (const size of [100, 3, 1000]) {
    list.reserve(size);
    assert.equal(list.length, 0);
    for (let node = 0; node < size; node++) list.push(node, node / 2, 3);
    assert.equal(list.length, size);
    const last = size - 1;
    assert.deepEqual([list.nodes[last], list.local[last], list.population[last]], [last, last / 2, 3]);
    list.totals[last] = 5;
    list.raw[last] = 7;
    assert.deepEqual([list.totals[last], list.raw[last]], [5, 7]);
  }
});
