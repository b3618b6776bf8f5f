import assert from "node:assert/strict";
import { test } from "node:test";
import { choosePodCidr, virtualIpsBeside } from "./pod-cidr.ts";

test("the range is in the pool and depends on the seed", () => {
  const chosen = new Set(
    ["a", "b", "c", "d2x8k1qz"].map((seed) => choosePodCidr(["default", "192.0.2.0/24"], seed)),
  );

  assert.equal(chosen.size, 4);
  for (const cidr of chosen) assert.match(cidr, /^10\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.\d+\.0\/20$/);
  assert.equal(choosePodCidr([], "a"), choosePodCidr(["127.0.0.1"], "a"));
});

test("another range is chosen if a wider or narrower route overlaps it", () => {
  const free = choosePodCidr([], "seed");
  const [base] = free.split("/");

  assert.notEqual(choosePodCidr([free], "seed"), free);
  assert.notEqual(choosePodCidr([`${base}/32`], "seed"), free);
  assert.notEqual(choosePodCidr([`${base}/16`], "seed"), free);
  assert.match(choosePodCidr(["10.64.0.0/11"], "seed"), /^10\.(9[6-9]|1[01]\d|12[0-7])\./);
});

test("returns no range if the whole pool is routed", () => {
  assert.throws(() => choosePodCidr(["10.0.0.0/8"], "seed"), /no free range/);
});

test("addresses of services are outside the pods' range", () => {
  assert.equal(virtualIpsBeside("10.64.16.0/20"), "10.192.16.0/20");
  assert.equal(virtualIpsBeside("10.127.240.0/20"), "10.255.240.0/20");
});
