import assert from "node:assert/strict";
import { test } from "node:test";
import { PodTemplate } from "@forage/proto/forage/agent/v1/agent";
import { PodRecord, PodTemplateRecord } from "@forage/proto/forage/store/v1/store";
import { encodeRecord } from "../model/codec.ts";
import { podTemplateKey } from "../model/keys.ts";
import { PodTemplates } from "./pod-templates.ts";

const OF_WEB = { namespace: "default", workloadKind: "container_service", workloadName: "web" };
const KEY = podTemplateKey("default/container_service/web", "ref-1");

const apply = (templates: PodTemplates, image: string, modRevision: number): void => {
  const template = PodTemplate.fromPartial({ container: { name: "main", image } });
  const value = encodeRecord(PodTemplateRecord, PodTemplateRecord.fromPartial({ ...OF_WEB, template }));
  templates.apply(KEY, { key: KEY, value, createRevision: 1, modRevision, version: 1 });
};

const aPod = (fields: Partial<PodRecord> = {}): PodRecord =>
  PodRecord.fromPartial({ ...OF_WEB, templateRef: "ref-1", templateHash: "hash-1", ...fields });

test("pods of a template share it, its groups and their texts", () => {
  const templates = new PodTemplates();
  apply(templates, "app:v1", 1);
  const [one, other] = [templates.resolve(aPod({ name: "a" })), templates.resolve(aPod({ name: "b" }))];
  assert.equal(one.record.template?.container?.image, "app:v1");
  assert.equal(other.record.template, one.record.template);
  assert.equal(other.templateGroups, one.templateGroups);
  assert.deepEqual([one.record.name, other.record.name], ["a", "b"]);
  assert.equal(one.workloadKey, "default/container_service/web");
});

test("a pod with other texts keeps them, and the next pod keeps its own", () => {
  const templates = new PodTemplates();
  apply(templates, "app:v1", 1);
  templates.resolve(aPod());
  for (const [other, image] of [
    [{ templateHash: "hash-2" }, "app:v1"],
    [{ namespace: "shop" }, undefined],
    [{ workloadName: "api" }, undefined],
  ] as const) {
    const pod = aPod(other);
    const { record, workloadKey } = templates.resolve(pod);
    assert.equal(record.templateHash, pod.templateHash);
    assert.equal(workloadKey, `${pod.namespace}/container_service/${pod.workloadName}`);
    assert.equal(record.template?.container?.image, image);
    assert.equal(templates.resolve(aPod()).record.templateHash, "hash-1");
  }
});

test("a pod gets a template that was replaced or deleted after the pod before it", () => {
  const templates = new PodTemplates();
  apply(templates, "app:v1", 1);
  templates.resolve(aPod());
  apply(templates, "app:v2", 2);
  assert.equal(templates.resolve(aPod()).record.template?.container?.image, "app:v2");
  templates.apply(KEY, undefined);
  assert.equal(templates.resolve(aPod()).record.template, undefined);
});
