import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { aNode, aPod, aServiceEntry, aWorkloadEntry, type PodFields } from "../../test/support/entries.ts";
import { aView, type Contents } from "../../test/support/view.ts";
import { endpointsOf, readyEndpointCount, targetPortOf } from "./endpoints.ts";

const HTTP = { container: "main", containerPort: 8080, protocol: "TCP", hostPort: 20_001 };
const READY = { ready: true, hostPorts: [HTTP] };
const base = { resources: [aWorkloadEntry(), aServiceEntry()], nodes: [aNode()] };

describe("endpointsOf", () => {
  for (const [what, contents, expected] of [
    ["includes a ready pod", { pods: [pod("a", {})] }, ["a 192.0.2.1:20001"]],
    [
      "sorts pods by name",
      { pods: [pod("b", {}), pod("a", {})] },
      ["a 192.0.2.1:20001", "b 192.0.2.1:20001"],
    ],
    ["excludes an unready pod", { pods: [pod("a", { status: { ready: false, hostPorts: [HTTP] } })] }, []],
    ["excludes a stopping pod", { pods: [pod("a", { stopping: true })] }, []],
    ["excludes a pod of another workload", { pods: [pod("a", { workload: "other" })] }, []],
    ["excludes a pod of another namespace", { pods: [pod("a", { namespace: "other" })] }, []],
    ["excludes a pod of a job with the same name", { pods: [pod("a", { kind: "job" })] }, []],
    ["excludes a pod on a lost node", { pods: [pod("a", {})], nodes: [aNode({ ready: false })] }, []],
    [
      "excludes a pod on a node without an address",
      { pods: [pod("a", {})], nodes: [aNode({ address: "" })] },
      [],
    ],
    [
      "excludes a pod without the port",
      { pods: [pod("a", { status: { ready: true, hostPorts: [{ ...HTTP, containerPort: 81 }] } })] },
      [],
    ],
    [
      "excludes a pod with the port for another protocol",
      { pods: [pod("a", { status: { ready: true, hostPorts: [{ ...HTTP, protocol: "UDP" }] } })] },
      [],
    ],
    [
      "excludes the pods of a service that is being deleted",
      { pods: [pod("a", {})], resources: [aServiceEntry({ deleting: true })] },
      [],
    ],
    ["returns no endpoints without the service", { pods: [pod("a", {})], resources: [] }, []],
  ] as readonly (readonly [string, Contents, readonly string[]])[]) {
    test(what, async (t) => {
      const { state } = await aView(t, { ...base, ...contents });
      const found = endpointsOf(state, "shop", "web", 80);
      assert.deepEqual(
        found.map((e) => `${e.pod} ${e.address}:${e.port}`),
        expected,
      );
    });
  }
});

test("an endpoint contains its pod, node, zone and workload", async (t) => {
  const nodes = [aNode({ labels: { "topology.kubernetes.io/zone": "a" } })];
  const { state } = await aView(t, { ...base, nodes, pods: [pod("a", {})] });
  assert.deepEqual(endpointsOf(state, "shop", "web", 80), [
    {
      address: "192.0.2.1",
      port: 20_001,
      pod: "a",
      node: "n1",
      zone: "a",
      workload: "web",
      protocol: "TCP",
      opaque: undefined,
      localOnly: false,
    },
  ]);
});

test("uses a port that the service doesn't list as the container port", async (t) => {
  const { state } = await aView(t, { ...base, pods: [pod("a", {})] });
  assert.equal(endpointsOf(state, "shop", "web", 8080).length, 1);
  assert.equal(endpointsOf(state, "shop", "web", 81).length, 0);
});

test("maps a service's port to its target port, or to the same number", () => {
  const ports = [
    { name: "a", port: 80, targetPort: 8080, protocol: "", nodePort: 0 },
    { name: "b", port: 81, targetPort: 0, protocol: "", nodePort: 0 },
  ];
  assert.deepEqual(
    [80, 81, 82].map((port) => targetPortOf(ports, port)),
    [8080, 81, 82],
  );
});

test("prefers TCP if a service lists a port for several protocols", async (t) => {
  const ports = [
    { name: "dns", port: 53, protocol: "UDP", targetPort: 5353 },
    { name: "dns-tcp", port: 53, protocol: "TCP", targetPort: 8080 },
    { name: "log", port: 514, protocol: "UDP", targetPort: 5353 },
  ];
  const udp = { ...HTTP, containerPort: 5353, protocol: "UDP", hostPort: 20_002 };
  const resources = [aServiceEntry({ spec: { ports } })];
  const pods = [pod("a", { status: { ready: true, hostPorts: [udp, HTTP] } })];
  const { state } = await aView(t, { ...base, resources, pods });
  const found = (port: number) =>
    endpointsOf(state, "shop", "web", port).map((e) => `${e.port}/${e.protocol}`);
  assert.deepEqual([53, 514].map(found), [["20001/TCP"], ["20002/UDP"]]);
});

test("counts a pod with several ports once", async (t) => {
  const metrics = { ...HTTP, containerPort: 9090, hostPort: 20_002 };
  const ports = [
    { name: "http", port: 80, targetPort: 8080 },
    { name: "metrics", port: 9090 },
  ];
  const { state } = await aView(t, {
    ...base,
    resources: [aServiceEntry({ spec: { ports } })],
    pods: [pod("a", { status: { ready: true, hostPorts: [HTTP, metrics] } }), pod("b", {})],
  });
  assert.equal(readyEndpointCount(state, "shop", "web"), 2);
  assert.equal(readyEndpointCount(state, "shop", "other"), 0);
});

function pod(name: string, fields: PodFields) {
  return aPod({ name, status: READY, ...fields });
}
