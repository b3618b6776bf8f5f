import assert from "node:assert/strict";
import { test } from "node:test";
import { retryListing } from "./retry-listing.ts";

const REMOVED = new Error('container "da89" in namespace "forage-t": not found');

function failing(times: number, error: Error): { list: () => Promise<string>; calls: () => number } {
  let calls = 0;
  const list = async () => {
    if (++calls <= times) throw error;
    return "web";
  };
  return { list, calls: () => calls };
}

test("lists again if a container was removed in the meantime", async () => {
  const { list, calls } = failing(2, REMOVED);
  assert.equal(await retryListing(list), "web");
  assert.equal(calls(), 3);
});

test("fails at once for any other error, and after five tries", async () => {
  const other = failing(1, new Error("cannot connect to containerd"));
  await assert.rejects(retryListing(other.list), /cannot connect/);
  assert.equal(other.calls(), 1);
  const always = failing(9, REMOVED);
  await assert.rejects(retryListing(always.list), REMOVED);
  assert.equal(always.calls(), 5);
});
