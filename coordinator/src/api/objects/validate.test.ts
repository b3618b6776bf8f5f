import assert from "node:assert/strict";
import { test } from "node:test";
import { PutObjectRequest } from "@forage/proto/forage/operator/v1/operator";
import { validatePut } from "./validate.ts";

function put(username: string, password = "p"): void {
  const value = { server: "registry.example", username, password };
  const spec = { $case: "registryCredential", value } as const;
  validatePut(
    PutObjectRequest.fromPartial({ namespace: "shop", object: { namespace: "shop", name: "hub", spec } }),
  );
}

test("accepts names of registry users up to 256 bytes, and passwords up to 16 KiB", () => {
  put("u".repeat(256), "p".repeat(16 * 1024));
  assert.throws(() => put("u".repeat(257)), /username: must not be longer than 256/);
  assert.throws(() => put("u", "p".repeat(16 * 1024 + 1)), /password: must not be longer than 16384/);
});

test("rejects a name of a registry user with a colon or a control character", () => {
  assert.throws(() => put("a:b"), /username: must not contain ':'/);
  assert.throws(() => put("a\n"), /username: /);
});
