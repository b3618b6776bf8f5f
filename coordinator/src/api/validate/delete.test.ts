import assert from "node:assert/strict";
import { test } from "node:test";
import { CoordinatorError } from "../../errors.ts";
import { validateDelete } from "./delete.ts";

test("accepts a namespace and labels", () => {
  validateDelete({ namespace: "shop", labels: { app: "web" } });
});

for (const [what, request, fields] of [
  ["no namespace", { namespace: "", labels: { app: "web" } }, ["namespace"]],
  ["a broken namespace", { namespace: "a/b", labels: { app: "web" } }, ["namespace"]],
  ["no labels", { namespace: "shop", labels: {} }, ["labels"]],
  ["a broken label", { namespace: "shop", labels: { "a b": "", c: "d/e" } }, ["labels[a b]", "labels[c]"]],
  ["nothing", { namespace: "", labels: {} }, ["namespace", "labels"]],
] as const) {
  test(`${what} is INVALID`, () => {
    assert.throws(
      () => validateDelete(request),
      (error: unknown) => {
        assert.ok(error instanceof CoordinatorError);
        assert.deepEqual(
          error.violations.map(({ field }) => field),
          fields,
        );
        return error.code === "INVALID";
      },
    );
  });
}

test("rejects a request without labels, and names the command for a whole namespace", () => {
  assert.throws(
    () => validateDelete({ namespace: "shop", labels: {} }),
    /forage delete --all --namespace shop/,
  );
  assert.throws(
    () => validateDelete({ namespace: "$(x)", labels: {} }),
    /forage delete --all --namespace NAMESPACE/,
  );
});
