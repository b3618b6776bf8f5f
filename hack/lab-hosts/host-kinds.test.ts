import assert from "node:assert/strict";
import { test } from "node:test";
import { HOST_KINDS, labMissingVariable, missingForLab, testedKinds } from "./host-kinds.ts";

test("a kind of hosts that does not boot leaves the tests of the other kinds in place", () => {
  const env = { [labMissingVariable("uml")]: "the kernel can't be built" };
  assert.equal(missingForLab("uml", env), "the kernel can't be built");
  assert.equal(missingForLab("nspawn", env), false);
});

test("tests run on the kinds that the environment names, and on the fastest one by default", () => {
  assert.deepEqual(testedKinds({}), ["nspawn"]);
  assert.deepEqual(testedKinds({ FORAGE_LAB_KINDS: HOST_KINDS.join(" ") }), HOST_KINDS);
});
