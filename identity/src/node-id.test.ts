import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { clusterName, nodeId } from "./node-id.ts";

describe("names", () => {
  it("consist of lower-case letters, digits, dots and dashes", () => {
    for (const text of ["a", "n1", "rack-3.host-12.lan", "0", "a".repeat(57)])
      assert.equal(nodeId(text), text);
  });

  it("are rejected otherwise", () => {
    for (const text of ["", "-a", "a-", ".a", "a.", "A", "a_b", "a b", "a/b", "a\n", "ä", "a".repeat(58)]) {
      assert.throws(() => nodeId(text), { code: "INVALID_ARGUMENT" }, JSON.stringify(text));
      assert.throws(() => clusterName(text), { code: "INVALID_ARGUMENT" });
    }
  });
});
