import assert from "node:assert/strict";
import { test } from "node:test";
import { submodulesOf } from "./clone-repository.ts";

const MAX = 200;

for (const [count, problem] of [
  [0, undefined],
  [1, undefined],
  [MAX, undefined],
  [MAX + 1, "only the first 200 are fetched"],
] as const)
  test(`fetches at most ${MAX} of ${count} submodules`, () => {
    const names = Array.from({ length: count }, (_, index) => `lib/part ${index}`);
    const listing = names.map((name) => `submodule.${name}.path\n${name}\0`).join("");
    assert.deepEqual(submodulesOf(listing), { paths: names.slice(0, MAX), problem });
  });
