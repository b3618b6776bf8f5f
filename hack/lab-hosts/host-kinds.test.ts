import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bootedKinds,
  FULL_KINDS,
  fileLimitFor,
  HOST_KINDS,
  labMissingVariable,
  limitFor,
  missingForLab,
  testedKinds,
} from "./host-kinds.ts";

test("a kind of hosts that does not boot does not affect the tests of the other kinds", () => {
  const env = { [labMissingVariable("uml")]: "the kernel can't be built" };
  assert.equal(missingForLab("uml", env), "the kernel can't be built");
  assert.equal(missingForLab("nspawn", env), false);
});

test("tests run on the kinds that the environment names, and on the fastest one by default", () => {
  assert.deepEqual(testedKinds({}), ["nspawn"]);
  assert.deepEqual(testedKinds({ FORAGE_LAB_KINDS: HOST_KINDS.join(" ") }), HOST_KINDS);
});

test("the kind that replaces virtual machines is prepared, too, unless virtual machines are tested", () => {
  assert.deepEqual(bootedKinds({ FORAGE_LAB_KINDS: "uml" }), ["uml", "nspawn"]);
  assert.deepEqual(bootedKinds({}), ["nspawn"]);
  assert.deepEqual(bootedKinds({ FORAGE_LAB_KINDS: "uml vagrant" }), ["uml", "vagrant"]);
});

test("a file has time for each kind of hosts that it runs on, and more for the long tests", () => {
  const [one, other] = [fileLimitFor(["nspawn"], false), fileLimitFor(["uml"], false)];
  assert.ok(one >= 600_000 && other > one);
  assert.equal(fileLimitFor(FULL_KINDS, false), one + other);
  assert.ok(fileLimitFor(FULL_KINDS, true) > one + other);
  assert.throws(() => fileLimitFor(["cloud"], false), { code: "BAD_USAGE" });
});

test("the kinds of all tests of booted hosts need no provider of virtual machines", () => {
  assert.deepEqual([...FULL_KINDS, "vagrant"], HOST_KINDS);
});

test("tests wait longer for slower kinds of hosts", () => {
  assert.ok(limitFor("uml").timeout > limitFor("nspawn").timeout);
});
