import assert from "node:assert/strict";
import { test } from "node:test";
import { Shares } from "./shares.ts";

test("one workspace takes at most half of the places, and others still get some", () => {
  const shares = new Shares({ what: "places", total: 100, ofUser: 90, isFair: true });
  const takeAll = (id: string): (() => void)[] => {
    const taken: (() => void)[] = [];
    for (let done = shares.tryTake(id); done !== undefined; done = shares.tryTake(id)) taken.push(done);
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
  const shares = new Shares({ what: "places", total: 100, ofUser: 2 });
  const first = shares.take("a");
  shares.take("a");
  assert.equal(shares.tryTake("a"), undefined);
  assert.throws(() => shares.take("a"), {
    code: "RESOURCE_EXHAUSTED",
    message: "places: 2 of this token, which is the limit; try again when one has ended",
  });
  first();
  assert.notEqual(shares.tryTake("a"), undefined);
});

test("users share all places where no share is kept for the next one", () => {
  const shares = new Shares({ what: "places", total: 3, ofUser: 2 });
  const giveBack = shares.take("a");
  for (const user of ["a", "b"]) shares.take(user);
  assert.equal(shares.taken, 3);
  assert.throws(() => shares.take("b"), { message: /^places: 3, which is the limit/ });
  giveBack();
  giveBack();
  assert.equal(shares.taken, 2);
  shares.take("b");
});
