import assert from "node:assert/strict";
import { test } from "node:test";
import { CoordinatorError } from "../../errors.ts";
import { validateApiToken, validateJoinToken } from "./tokens.ts";

const API = {
  role: "viewer",
  namespaces: ["shop"],
  ttlSeconds: 0n,
  neverExpires: false,
  description: "for the tests",
};
const JOIN = { ttlSeconds: 0, nodeName: "", reusable: false, labels: { rack: "r1" }, taints: [] };

test("accepts valid tokens", () => {
  validateApiToken(API);
  validateApiToken({ ...API, namespaces: [], description: "" });
  validateJoinToken(JOIN);
});

for (const [what, check, fields] of [
  [
    "a star for every namespace",
    () => validateApiToken({ ...API, namespaces: ["shop", "*"] }),
    ["namespaces[1]"],
  ],
  [
    "101 namespaces",
    () => validateApiToken({ ...API, namespaces: Array.from({ length: 101 }, () => "a") }),
    ["namespaces"],
  ],
  ["a description of two lines", () => validateApiToken({ ...API, description: "a\nb" }), ["description"]],
  [
    "a description of 2,000 bytes",
    () => validateApiToken({ ...API, description: "x".repeat(2_000) }),
    ["description"],
  ],
  [
    "a taint without an effect",
    () => validateJoinToken({ ...JOIN, taints: [{ key: "a", value: "", effect: "" }] }),
    ["taints[0].effect"],
  ],
  ["a broken label", () => validateJoinToken({ ...JOIN, labels: { "a b": "" } }), ["labels[a b]"]],
] as const) {
  test(`${what} is INVALID`, () => {
    assert.throws(check, (error: unknown) => {
      assert.ok(error instanceof CoordinatorError);
      assert.deepEqual(
        error.violations.map(({ field }) => field),
        fields,
      );
      return error.code === "INVALID";
    });
  });
}
