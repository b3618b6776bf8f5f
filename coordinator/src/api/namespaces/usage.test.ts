import assert from "node:assert/strict";
import { test } from "node:test";
import { PodRecord, ResourceRecord } from "@forage/proto/forage/store/v1/store";
import { aPod } from "../../../test/support/entries.ts";
import { aView } from "../../../test/support/view.ts";
import { resourceKey } from "../../model/keys.ts";
import type { PodEntry, ResourceEntry } from "../../state/entries.ts";
import { Usage } from "./usage.ts";

test("counts the requests of a service's pods if they exceed those of its applied content", async (t) => {
  const pods = [aPodOf("web-1", "4"), aPodOf("web-2", "4"), aPodOf("web-3", "8", true)];
  const { state } = await aView(t, { resources: [aWeb(2, "100m")], pods });
  const usage = new Usage(state);
  const { cpu, pods: count } = usage.ofNamespace("shop");
  assert.deepEqual([count, cpu], [2, 8_000], "pods that stop are not counted");
  assert.equal(usage.leaving("shop").cpu, 7_800);
});

test("counts a deleted service until its record is removed, as usage that ends without a request", async (t) => {
  const { state } = await aView(t, { resources: [aWeb(2, "100m", true)] });
  const usage = new Usage(state);
  assert.deepEqual([usage.ofNamespace("shop").pods, usage.leaving("shop").pods], [2, 2]);
});

function requesting(cpu: string) {
  return { name: "main", image: "app:v1", resources: { requests: { cpu } } };
}

function aPodOf(name: string, cpu: string, stopping = false): PodEntry {
  const pod = aPod({ name, stopping });
  const record = PodRecord.fromPartial({ ...pod.record, template: { container: requesting(cpu) } });
  return { ...pod, record };
}

function aWeb(replicas: number, cpu: string, deleting = false): ResourceEntry {
  const value = { scaling: { replicas }, container: requesting(cpu) };
  const resource = { name: "web", spec: { $case: "containerService", value } };
  const named = { namespace: "shop", kind: "container_service", name: "web" };
  const record = ResourceRecord.fromPartial({ ...named, deleting, resource } as object);
  return { key: resourceKey("shop", "container_service", "web"), record } as ResourceEntry;
}
