import assert from "node:assert/strict";
import { test } from "node:test";
import { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { ApplyResourcesRequest } from "@forage/proto/forest/v1/forage";
import { hashLabels, hashMessage } from "./hash.ts";

const template = (labels: Record<string, string>, image = "app:v1") =>
  PodTemplate.fromPartial({ container: { name: "main", image }, podConfig: { labels } });

test("hashes don't depend on the order in which maps were filled", () => {
  const one = hashMessage(PodTemplate, template({ a: "1", b: "2", "10": "x", "9": "y" }));
  const other = hashMessage(PodTemplate, template({ "9": "y", b: "2", "10": "x", a: "1" }));
  assert.equal(one, other);
  assert.match(one, /^[0-9a-f]{64}$/);
});

test("maps in lists of messages are sorted", () => {
  const request = (labels: Record<string, string>) =>
    ApplyResourcesRequest.fromPartial({
      resources: [{ name: "a" }, { name: "b", spec: { $case: "job", value: { podConfig: { labels } } } }],
    });
  const hash = hashMessage(ApplyResourcesRequest, request({ b: "1", a: "2" }));
  assert.equal(hash, hashMessage(ApplyResourcesRequest, request({ a: "2", b: "1" })));
  assert.notEqual(hash, hashMessage(ApplyResourcesRequest, request({ a: "1", b: "2" })));
});

test("hashes differ for different labels and images", () => {
  const base = hashMessage(PodTemplate, template({ a: "1" }));
  for (const other of [
    template({ a: "2" }),
    template({ b: "1" }),
    template({}),
    template({ a: "1" }, "app:v2"),
  ])
    assert.notEqual(hashMessage(PodTemplate, other), base);
  assert.notEqual(hashMessage(PodTemplate, template({ a: "1" }), "x"), base);
  const parts = hashMessage(PodTemplate, template({}), "x", "y");
  assert.notEqual(hashMessage(PodTemplate, template({}), "xy"), parts);
});

test("hashing doesn't change a message, and a decoded message has the same hash", () => {
  const message = template({ b: "2", a: "1" });
  const copy = structuredClone(message);
  const hash = hashMessage(PodTemplate, message);
  assert.deepEqual(message, copy);
  const decoded = PodTemplate.decode(PodTemplate.encode(message).finish());
  assert.equal(hashMessage(PodTemplate, decoded), hash);
});

test("equal labels have equal hashes", () => {
  assert.equal(hashLabels({ a: "1", b: "2" }), hashLabels({ b: "2", a: "1" }));
  assert.notEqual(hashLabels({ a: "1" }), hashLabels({ a: "2" }));
  assert.notEqual(hashLabels({ a: "b,c" }), hashLabels({ a: "b", c: "" }));
});
