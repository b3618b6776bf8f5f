import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodSpec } from "../types.ts";
import { defaultedRequests, podRequests } from "./pod-requests.ts";

const pod = (parts: Partial<PodSpec>): PodSpec => ({
  name: "p",
  namespace: "default",
  containers: [],
  ...parts,
});
const cpu = (amount: string) => ({ requests: { cpu: amount } });

test("adds up containers exactly, and rounds up once", () => {
  const thirds = pod({ containers: [cpu("0.0004"), cpu("0.0004"), cpu("0.0004")] });
  assert.equal(podRequests(thirds).get("cpu"), 2);
});

test("the start of a pod may need more than its running containers", () => {
  const spec = pod({ containers: [cpu("1"), cpu("500m")], initContainers: [cpu("2"), cpu("1")] });
  assert.equal(podRequests(spec).get("cpu"), 2000);
});

test("sidecars count with the containers, and with later init containers", () => {
  const sidecar = { ...cpu("300m"), restartPolicy: "Always" as const };
  assert.equal(
    podRequests(pod({ containers: [cpu("1")], initContainers: [cpu("1"), sidecar] })).get("cpu"),
    1300,
  );
  assert.equal(
    podRequests(pod({ containers: [cpu("1")], initContainers: [sidecar, cpu("2")] })).get("cpu"),
    2300,
  );
});

test("a limit without a request is the request", () => {
  const container = { requests: { cpu: "100m" }, limits: { cpu: "1", memory: "1Gi" } };
  const amounts = podRequests(pod({ containers: [container] }));
  assert.deepEqual([amounts.get("cpu"), amounts.get("memory")], [100, 2 ** 30]);
});

test("scores assume some usage for a container without requests, but none for an explicit 0", () => {
  const amounts = defaultedRequests(pod({ containers: [{}, { requests: { cpu: "0", memory: "0" } }] }));
  assert.deepEqual([amounts.get("cpu"), amounts.get("memory")], [100, 200 * 2 ** 20]);
});

test("estimates never make a pod with countable requests invalid", () => {
  const most = `${Number.MAX_SAFE_INTEGER}`;
  const pod = { name: "p", namespace: "n", containers: [{ requests: { memory: most } }, {}] };
  assert.equal(podRequests(pod).get("memory"), Number.MAX_SAFE_INTEGER);
  assert.equal(defaultedRequests(pod).get("memory"), Number.MAX_SAFE_INTEGER);
  const two = {
    ...pod,
    containers: [
      { requests: { memory: "999999Gi" } },
      ...Array(9).fill({ requests: { memory: "999999Gi" } }),
    ],
  };
  assert.throws(() => podRequests(two), { code: "quantity_out_of_range" });
});

test("rejects an invalid quantity and names its field", () => {
  const bad = pod({ containers: [cpu("1"), { requests: { memory: "1e3k" } }] });
  assert.throws(() => podRequests(bad), { code: "invalid_quantity", field: "containers[1].requests.memory" });
});
