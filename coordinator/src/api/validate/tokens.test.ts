import assert from "node:assert/strict";
import { test } from "node:test";
import { CoordinatorError } from "../../errors.ts";
import { validateApiToken, validateJoinToken } from "./tokens.ts";

const api = {
  role: "viewer",
  namespaces: ["shop"],
  ttlSeconds: 0n,
  neverExpires: false,
  description: "for the tests",
};
const join = { ttlSeconds: 0, nodeName: "", reusable: false, labels: { rack: "r1" } };

test("tokens for what can exist are made", () => {
  validateApiToken(api);
  validateApiToken({ ...api, namespaces: [], description: "" });
  validateJoinToken(join);
});

for (const [what, check, fields] of [
  [
    "every namespace by a star",
    () => validateApiToken({ ...api, namespaces: ["shop", "*"] }),
    ["namespaces[1]"],
  ],
  [
    "101 namespaces",
    () => validateApiToken({ ...api, namespaces: Array.from({ length: 101 }, () => "a") }),
    ["namespaces"],
  ],
  ["a description of two lines", () => validateApiToken({ ...api, description: "a\nb" }), ["description"]],
  [
    "a description of 2,000 bytes",
    () => validateApiToken({ ...api, description: "x".repeat(2_000) }),
    ["description"],
  ],
  ["a broken label", () => validateJoinToken({ ...join, labels: { "a b": "" } }), ["labels[a b]"]],
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
