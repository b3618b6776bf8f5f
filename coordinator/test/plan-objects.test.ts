import assert from "node:assert/strict";
import { test } from "node:test";
import { PutObjectRequest } from "@forage/proto/forage/operator/v1/operator";
import { status } from "@grpc/grpc-js";
import { startWorld } from "./support/world.ts";

const LIMIT = { timeout: 180_000 };
const CANARY = "hunter2-canary";

test("shows what a put would change, stores nothing and reveals no secret", LIMIT, async (t) => {
  const world = await startWorld(t);
  const operator = world.operator();
  const plan = (name: string, spec: object) => operator.planObject(putRequest(name, spec));
  const created = await plan("db", secretSpec({ password: CANARY }));
  assert.deepEqual(
    [created.action, created.changes],
    ["create", [{ path: "data.password", before: undefined, after: `(${CANARY.length} bytes, not shown)` }]],
  );
  const stored = await operator.listObjects({ namespace: "shop", kind: "", labels: {} });
  assert.deepEqual(stored.objects, []);

  await operator.putObject(putRequest("db", secretSpec({ password: CANARY })));
  assert.equal((await plan("db", secretSpec({ password: CANARY }))).action, "unchanged");
  const other = "x".repeat(CANARY.length);
  const updated = await plan("db", secretSpec({ password: other, user: "u" }));
  assert.equal(updated.action, "update");
  assert.deepEqual(
    updated.changes.map(({ path }) => path),
    ["data.password", "data.user"],
  );
  assert.doesNotMatch(JSON.stringify(updated), new RegExp(`${CANARY}|${other}`));

  await operator.putObject(putRequest("app", configMapSpec({ mode: "a" })));
  assert.deepEqual((await plan("app", configMapSpec({ mode: "b" }))).changes, [
    { path: "data.mode", before: "a", after: "b" },
  ]);
  const claim = { $case: "claim", value: { capacity: "1Gi" } };
  assert.deepEqual((await plan("data", claim)).changes, [
    { path: "capacity", before: undefined, after: "1Gi" },
  ]);
  await operator.putObject(putRequest("data", claim));
  assert.equal((await plan("data", claim)).action, "unchanged");
  assert.equal((await operator.putObject(putRequest("data", claim))).action, "unchanged");
  await assert.rejects(plan("data", { $case: "claim", value: { capacity: "lots" } }), /is not a quantity/);
  // The answer reveals whether a guessed value is right.
  const viewer = world.operator(await world.token("viewer"));
  await assert.rejects(viewer.planObject(putRequest("db", secretSpec({}))), {
    code: status.PERMISSION_DENIED,
  });
});

function putRequest(name: string, spec: object, namespace = "shop"): PutObjectRequest {
  return PutObjectRequest.fromPartial({ namespace, object: { namespace, name, spec } } as object);
}

function secretSpec(data: Readonly<Record<string, string>>): object {
  return { $case: "secret", value: { data: bytes(data) } };
}

function configMapSpec(data: Readonly<Record<string, string>>): object {
  return { $case: "configMap", value: { data: bytes(data) } };
}

function bytes(data: Readonly<Record<string, string>>): Record<string, Buffer> {
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value)]));
}
