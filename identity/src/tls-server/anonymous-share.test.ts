import assert from "node:assert/strict";
import { test } from "node:test";
import { AnonymousShare } from "./anonymous-share.ts";

test("a new connection replaces the oldest of its address if the address has used up its share", () => {
  const share = new AnonymousShare<string>({ maxAnonymous: 10, maxAnonymousPerAddress: 2 });
  assert.equal(share.add("b1", "b"), undefined);
  assert.equal(share.add("a1", "a"), undefined);
  assert.equal(share.add("a2", "a"), undefined);
  assert.equal(share.add("a3", "a"), "a1");
  assert.equal(share.add("a4", "a"), "a2");
  assert.equal(share.size, 3);
});

test("a new connection replaces the oldest of the address with most connections if all places are taken", () => {
  const share = new AnonymousShare<string>({ maxAnonymous: 4, maxAnonymousPerAddress: 3 });
  for (const item of ["c1", "a1", "a2", "b1"]) share.add(item, item.slice(0, 1));
  assert.equal(share.add("d1", "d"), "a1");
  assert.equal(share.add("e1", "e"), "c1");
  assert.equal(share.size, 4);
});

test("a connection that closed or was proven frees its place once", () => {
  const share = new AnonymousShare<string>({ maxAnonymous: 2, maxAnonymousPerAddress: 2 });
  share.add("a1", "a");
  share.add("a2", "a");
  assert.equal(share.remove("a1", "a"), true);
  assert.equal(share.remove("a1", "a"), false);
  assert.equal(share.add("a3", "a"), undefined);
  assert.equal(share.add("a4", "a"), "a2");
  assert.equal(share.size, 2);
});

test("a replaced connection that closes later frees no other place", () => {
  const share = new AnonymousShare<string>({ maxAnonymous: 1, maxAnonymousPerAddress: 1 });
  share.add("a1", "a");
  assert.equal(share.add("a2", "a"), "a1");
  assert.equal(share.remove("a1", "a"), false);
  assert.equal(share.size, 1);
});

test("forgets an address without connections", () => {
  const share = new AnonymousShare<string>({ maxAnonymous: 1, maxAnonymousPerAddress: 1 });
  for (const item of ["a1", "b1", "c1"]) share.add(item, item.slice(0, 1));
  share.remove("c1", "c");
  assert.deepEqual([share.size, share.addresses], [0, 0]);
});
