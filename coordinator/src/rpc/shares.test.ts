import assert from "node:assert/strict";
import { test } from "node:test";
import { Shares } from "./shares.ts";

test("gives one workspace at most half of the slots, and leaves slots for others", () => {
  const shares = new Shares({ what: "places", total: 100, ofUser: 90, isFair: true });
  const takeAll = (id: string): (() => void)[] => {
    const releases: (() => void)[] = [];
    for (let done = shares.tryAcquire(id); done !== undefined; done = shares.tryAcquire(id))
      releases.push(done);
    return releases;
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

test("gives a workspace no more slots than its own limit", () => {
  const shares = new Shares({ what: "places", total: 100, ofUser: 2 });
  const first = shares.acquire("a");
  shares.acquire("a");
  assert.equal(shares.tryAcquire("a"), undefined);
  assert.throws(() => shares.acquire("a"), {
    code: "RESOURCE_EXHAUSTED",
    message: "places: 2 of this token, which is the limit; try again when one has ended",
  });
  first();
  assert.notEqual(shares.tryAcquire("a"), undefined);
});

test("lets users share all slots if no slot is reserved for the next user", () => {
  const shares = new Shares({ what: "places", total: 3, ofUser: 2 });
  const release = shares.acquire("a");
  for (const user of ["a", "b"]) shares.acquire(user);
  assert.equal(shares.held, 3);
  assert.throws(() => shares.acquire("b"), { message: /^places: 3, which is the limit/ });
  release();
  release();
  assert.equal(shares.held, 2);
  shares.acquire("b");
});
