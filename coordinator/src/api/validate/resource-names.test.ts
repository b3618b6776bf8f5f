import assert from "node:assert/strict";
import { test } from "node:test";
import { ApplyResourcesRequest, type ForageResource } from "@forage/proto/forest/v1/forage";
import { aWorkloadEntry } from "../../../test/support/entries.ts";
import { checkResourceNames } from "./resource-names.ts";

/** Returns a service with one container that requests extended resources. */
function asking(name: string, from: number, count: number): ForageResource {
  const names = Array.from({ length: count }, (_, index) => `vendor.example/r${from + index}`);
  const extended = Object.fromEntries(names.map((it) => [it, "1"]));
  const container = { name: "main", image: "app:v1", resources: { limits: { extended } } };
  const { resource } = aWorkloadEntry({ name, spec: { container } }).record;
  assert.ok(resource);
  return resource;
}

function check(resources: readonly ForageResource[], stored: readonly ForageResource[] = []): void {
  const entries = stored.map((resource) => {
    const entry = aWorkloadEntry({ name: resource.name });
    return { ...entry, record: { ...entry.record, resource } };
  });
  const request = ApplyResourcesRequest.fromPartial({ namespace: "shop" });
  checkResourceNames({ ...request, resources: [...resources] }, entries);
}

const REFUSED = {
  code: "INVALID",
  message: /would request 33 different extended resources, but at most 32 are allowed/,
};

test("limits a namespace to 32 different extended resources", () => {
  check([asking("a", 0, 32)]);
  assert.throws(() => check([asking("a", 0, 33)]), REFUSED);
  assert.throws(() => check([asking("b", 32, 1)], [asking("a", 0, 32)]), REFUSED);
});

test("counts each extended resource of stored workloads once, and none that is no longer requested", () => {
  check([asking("b", 0, 32)], [asking("a", 0, 32)]);
  check([asking("a", 32, 32)], [asking("a", 0, 32)]);
});
