import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultReserve, nodeResources } from "./node-resources.ts";

const GIBIBYTE = 2 ** 30;
const MEBIBYTE = 2 ** 20;

test("reserved resources are subtracted from the allocatable ones", () => {
  const host = { cpuMilli: 4_000, memoryBytes: 16 * GIBIBYTE, diskBytes: 100 * GIBIBYTE };
  const reserve = { cpuMilli: 200, memoryBytes: GIBIBYTE + 1, diskBytes: 5 * GIBIBYTE };
  assert.deepEqual(nodeResources(host, reserve, 110), {
    capacity: { cpu: "4", memory: "16777216Ki", "ephemeral-storage": "104857600Ki", pods: "110" },
    allocatable: { cpu: "3800m", memory: "15728639Ki", "ephemeral-storage": "99614720Ki", pods: "110" },
  });
});

test("a host smaller than its reserve has no allocatable resources", () => {
  const host = { cpuMilli: 50, memoryBytes: 128 * MEBIBYTE, diskBytes: 100 * MEBIBYTE };
  const { allocatable } = nodeResources(host, defaultReserve(host), 10);
  assert.deepEqual(allocatable, { cpu: "0", memory: "0Ki", "ephemeral-storage": "0Ki", pods: "10" });
});

test("the reserve grows with the host, within bounds", () => {
  const reserved = (memoryGib: number) =>
    defaultReserve({ cpuMilli: 1_000, memoryBytes: memoryGib * GIBIBYTE, diskBytes: 0 }).memoryBytes /
    MEBIBYTE;
  assert.deepEqual([1, 16, 1_024].map(reserved), [256, 819.2, 4_096]);
});
