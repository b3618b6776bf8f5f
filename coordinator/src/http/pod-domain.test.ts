import assert from "node:assert/strict";
import { test } from "node:test";
import { isPodHost } from "./pod-domain.ts";

test("distinguishes host names of opened ports from those of the coordinator", () => {
  for (const host of ["p-0a1b.localhost:7601", "P-0A1B.LOCALHOST"])
    assert.ok(isPodHost(host, "localhost"), host);
  for (const host of [
    undefined,
    "",
    "localhost:7601",
    "p-0a1b.example",
    "x.p-0a1b.localhost",
    "pods.localhost",
  ])
    assert.ok(!isPodHost(host, "localhost"), host);
  assert.ok(!isPodHost("p-0a1b.localhost", undefined));
});
