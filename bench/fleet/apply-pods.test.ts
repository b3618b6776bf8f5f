import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { requestsFor } from "./apply-pods.ts";

describe("requestsFor", () => {
  for (const pods of [1, 100, 250, 10_050])
    it(`returns requests for exactly ${pods} pods`, () => {
      const resources = requestsFor(pods).flatMap((request) => request.resources);
      const replicas = resources.map(({ spec }) =>
        spec?.$case === "containerService" ? (spec.value.scaling?.replicas ?? 0) : 0,
      );
      assert.equal(
        replicas.reduce((sum, count) => sum + count, 0),
        pods,
      );
    });
});
