import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ListPodsResponse,
  ListResourcesResponse,
  Pod,
  Resource,
} from "@forage/proto/forage/operator/v1/operator";
import { type Coordinator, operator } from "../client/coordinator.ts";
import { findForwardTarget } from "./forward-target.ts";

type PodChange = Parameters<typeof Pod.fromPartial>[0];
const READY: PodChange = { status: { ready: true } };
const SERVICE = Resource.fromPartial({
  ...{ kind: "service", name: "front" },
  spec: {
    spec: {
      $case: "service",
      value: { target: "web", ports: [{ port: 80, targetPort: 8080 }, { port: 443 }] },
    },
  },
});

/** Returns pods of the workload `web`, ordered by age, and a service in front of it. */
function aCoordinator(...changes: PodChange[]): Coordinator {
  const pods = changes.map((change, index) =>
    Pod.fromPartial({
      ...{ name: `web-${index}`, workloadKind: "container_service", workloadName: "web" },
      ...{ createdAt: { seconds: BigInt(index) }, ...change },
    }),
  );
  const workload = Resource.fromPartial({ kind: "container_service", name: "web" });
  const call = async (method: unknown, request: { readonly workload?: string; readonly name?: string }) => {
    if (method === operator.listPods)
      return ListPodsResponse.fromPartial({
        pods: pods.filter((pod) => pod.name === request.name || pod.workloadName === request.workload),
      });
    assert.equal(method, operator.listResources);
    return ListResourcesResponse.fromPartial({ resources: [workload, SERVICE] });
  };
  return { call } as unknown as Coordinator;
}

const targetOf = (text: string, ...pods: PodChange[]) =>
  findForwardTarget(aCoordinator(...pods), "shop", text);

test("forwards to the oldest ready pod of a workload that is not stopping", async () => {
  const { pod, replaceable, portOf } = await targetOf(
    "container_service/web",
    ...[{ ...READY, stopping: true }, { ...READY, nodeLost: true }, {}, { status: {} }, READY, READY],
  );
  assert.deepEqual([pod, replaceable, portOf(80)], ["web-4", true, 80]);
});

test("forwards a service's port to its target port, or to the same port without a target", async () => {
  const { pod, replaceable, portOf } = await targetOf("service/front", READY);
  assert.deepEqual([pod, replaceable, portOf(80), portOf(443)], ["web-0", true, 8080, 443]);
  assert.throws(() => portOf(81), /service\/front has no port 81; it has 80, 443/);
});

test("refuses a workload without a ready pod, and reports the number of its pods", async () => {
  const advice = "see forage describe container_service/web -n shop";
  await assert.rejects(targetOf("container_service/web"), {
    message: `container_service/web has no pods; ${advice}`,
  });
  await assert.rejects(targetOf("service/front", {}, { ...READY, stopping: true }), {
    message: `service/front has 2 pods, none of which is ready; ${advice}`,
  });
});

test("forwards to a pod given by name, and to no replacement", async () => {
  for (const text of ["web-1", "pod/web-1"]) {
    const { pod, replaceable, portOf } = await targetOf(text, READY, {});
    assert.deepEqual([pod, replaceable, portOf(80)], ["web-1", false, 80]);
  }
});

test("names a workload that does not exist", async () => {
  await assert.rejects(targetOf("container_service/wrong"), { code: "NOT_FOUND" });
});

test("refuses a node", async () => {
  await assert.rejects(targetOf("node/a1"), { code: "USAGE" });
});
