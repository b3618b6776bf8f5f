import assert from "node:assert/strict";
import { test } from "node:test";
import { clockTimes } from "../dashboard/data/format.ts";
import { readManifest } from "../dashboard/manifest/read-manifest.ts";

test("a pasted manifest of Kubernetes or Compose is refused with the command that converts it", () => {
  for (const [text, what] of [
    ["apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: web }", /Kubernetes \(kind Deployment\)/],
    ["namespace: shop\nresources: []\n---\napiVersion: v1\nkind: Service\n", /Kubernetes \(kind Service\)/],
    ["services:\n  web:\n    image: nginx\n", /a Compose file/],
  ] as const)
    assert.throws(
      () => readManifest(text),
      (error) =>
        error instanceof Error && what.test(error.message) && error.message.includes("forage convert -f"),
    );
  const [bundle] = readManifest("namespace: shop\nresources: [{ name: web, service: { target: web } }]");
  assert.equal(bundle?.namespace, "shop");
});

test("times of graphs are of 24 hours, with seconds where minutes would repeat", () => {
  const afternoon = new Date(2026, 0, 5, 17, 4, 30).getTime() / 1000;
  assert.deepEqual(clockTimes([afternoon, afternoon + 3_600], 3_600), ["17:04", "18:04"]);
  assert.deepEqual(clockTimes([afternoon], 30), ["17:04:30"]);
});
