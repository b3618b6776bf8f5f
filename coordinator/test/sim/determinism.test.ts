import assert from "node:assert/strict";
import { test } from "node:test";
import { makeSecrets } from "./sim-coordinator.ts";
import { simulate } from "./simulate.ts";

test("the same seed makes the same history, and others make others", async () => {
  const secrets = await makeSecrets();
  const digests = new Set<string>();
  for (const seed of [1, 2, 3, 4]) {
    const { digest } = await simulate({ seed, secrets });
    const again = await simulate({ seed, secrets });
    assert.equal(again.digest, digest, `seed ${seed}`);
    digests.add(digest);
  }
  assert.equal(digests.size, 4);
});
