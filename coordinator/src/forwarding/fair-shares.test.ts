import assert from "node:assert/strict";
import { test } from "node:test";
import { FairShares } from "./fair-shares.ts";

test("one workspace takes at most half of the places, and others still get some", () => {
  const shares = new FairShares({ places: 100, placesPerUser: 90 });
  const takeAll = (id: string): (() => void)[] => {
    const taken: (() => void)[] = [];
    for (let done = shares.take(id); done !== undefined; done = shares.take(id)) taken.push(done);
    return taken;
  };
  const greedy = takeAll("a");
  assert.equal(greedy.length, 50);
  assert.equal(takeAll("b").length, 25);
  for (const id of ["c", "d", "e", "f"]) assert.ok(takeAll(id).length > 0, id);
  for (const done of greedy) {
    done();
    done();
  }
  assert.ok(takeAll("g").length > 20);
});

test("a workspace never takes more than its own limit", () => {
  const shares = new FairShares({ places: 100, placesPerUser: 2 });
  const first = shares.take("a");
  shares.take("a");
  assert.equal(shares.take("a"), undefined);
  first?.();
  assert.notEqual(shares.take("a"), undefined);
});
