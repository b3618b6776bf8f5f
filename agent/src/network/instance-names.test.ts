import assert from "node:assert/strict";
import { test } from "node:test";
import { instanceNames } from "./instance-names.ts";

test("names fit the kernel's limits", () => {
  const names = instanceNames("abcdefgh");
  assert.ok(names.bridge.length <= 15);
  assert.deepEqual(instanceNames("a1"), {
    bridge: "fg-a1",
    table: "forage_a1",
    servicesTable: "forage_a1_services",
    accessTable: "forage_a1_access",
    namespacePrefix: "forage-a1-",
    cniNetwork: "forage-a1",
  });
});

test("rejects an instance whose name could be mistaken for another's or for an option", () => {
  for (const bad of ["", "a-b", "a_b", "A", "abcdefghi", "-a", "a b", "ä", "a\n"]) {
    assert.throws(() => instanceNames(bad), RangeError, bad);
  }
});
